// SPDX-License-Identifier: Apache-2.0

// rpc_peer SOCKET: serves Echo and Count of rpc_test.proto with gRPC's own C++ library, in one thread over one completion
// queue, which is its fastest way on one core. What src/rpc is measured against; built by bench/run alone.

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "rpc_test.grpc.pb.h"

namespace {

using nacre::test::v1::CountRequest;
using nacre::test::v1::CountResponse;
using nacre::test::v1::EchoRequest;
using nacre::test::v1::EchoResponse;
using nacre::test::v1::Test;

struct Step {
	virtual ~Step() = default;
	virtual void go(bool ok) = 0;
};

class Echo final : public Step {
public:
	Echo(Test::AsyncService *service, grpc::ServerCompletionQueue *queue)
		: service_(service), queue_(queue), answer_(&context_)
	{
		service_->RequestEcho(&context_, &request_, &answer_, queue_, queue_, this);
	}

	void go(bool ok) override
	{
		if (!ok || told_) {
			delete this;
			return;
		}
		new Echo(service_, queue_);
		told_ = true;
		response_.set_data(std::move(*request_.mutable_data()));
		answer_.Finish(response_, grpc::Status::OK, this);
	}

private:
	Test::AsyncService *service_;
	grpc::ServerCompletionQueue *queue_;
	grpc::ServerContext context_;
	EchoRequest request_;
	EchoResponse response_;
	grpc::ServerAsyncResponseWriter<EchoResponse> answer_;
	bool told_ = false;
};

class Count final : public Step {
public:
	Count(Test::AsyncService *service, grpc::ServerCompletionQueue *queue)
		: service_(service), queue_(queue), answer_(&context_)
	{
		service_->RequestCount(&context_, &request_, &answer_, queue_, queue_, this);
	}

	void go(bool ok) override
	{
		if (!ok || ended_) {
			delete this;
			return;
		}
		if (next_ == 0) {
			new Count(service_, queue_);
			response_.set_ballast(std::string(request_.size(), '\0'));
		}
		if (next_ == request_.count()) {
			ended_ = true;
			answer_.Finish(grpc::Status::OK, this);
			return;
		}
		response_.set_number(next_++);
		answer_.Write(response_, this);
	}

private:
	Test::AsyncService *service_;
	grpc::ServerCompletionQueue *queue_;
	grpc::ServerContext context_;
	CountRequest request_;
	CountResponse response_;
	grpc::ServerAsyncWriter<CountResponse> answer_;
	std::uint32_t next_ = 0;
	bool ended_ = false;
};

}  // namespace

int main(int argc, char **argv)
{
	if (argc != 2)
		return 1;
	Test::AsyncService service;
	grpc::ServerBuilder builder;
	builder.AddListeningPort(std::string("unix:") + argv[1], grpc::InsecureServerCredentials());
	builder.RegisterService(&service);
	std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
	std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
	if (!server)
		return 1;
	for (int i = 0; i < 256; i++)
		new Echo(&service, queue.get());
	new Count(&service, queue.get());
	void *tag;
	bool ok;
	while (queue->Next(&tag, &ok))
		static_cast<Step *>(tag)->go(ok);
	return 0;
}
