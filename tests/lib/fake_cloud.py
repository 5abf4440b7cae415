# SPDX-License-Identifier: Apache-2.0
"""The base of the fake clouds: a server of HTTP on loopback."""
import http.server
import socketserver
import threading


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


class Cloud:
    """A context manager. The cloud itself has `lock` and `machines`."""

    def listen(self, handler):
        self.server = Server(("127.0.0.1", 0), handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)
