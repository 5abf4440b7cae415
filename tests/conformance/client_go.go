// SPDX-License-Identifier: Apache-2.0

// Kubernetes' own client library against a URL of the streaming server:
//
//	client_go exec spdy|websocket URL [stdin] [tty]
//	client_go forward spdy|websocket URL LOCAL:REMOTE
//
// exec is a remote command on the program's own descriptors; the exit status is the command's. With "tty" the terminal
// has two sizes, 80x25 and then 102x34. forward says "ready" on its output and ends with its input. A kubelet or an API server (https)
// may have any certificate, and gets the environment variable TOKEN.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

type sizes struct{ left []remotecommand.TerminalSize }

func (s *sizes) Next() *remotecommand.TerminalSize {
	if len(s.left) == 0 {
		return nil
	}
	next := s.left[0]
	s.left = s.left[1:]
	return &next
}

func executor(transport string, config *rest.Config, at *url.URL) (remotecommand.Executor, error) {
	if transport == "websocket" {
		return remotecommand.NewWebSocketExecutor(config, "GET", at.String())
	}
	return remotecommand.NewSPDYExecutor(config, "POST", at)
}

func execute(transport string, config *rest.Config, at *url.URL, words []string) error {
	options := remotecommand.StreamOptions{Stdout: os.Stdout, Stderr: os.Stderr}
	for _, word := range words {
		switch word {
		case "stdin":
			options.Stdin = os.Stdin
		case "tty":
			options.Tty, options.Stderr = true, nil
			options.TerminalSizeQueue = &sizes{[]remotecommand.TerminalSize{{Width: 80, Height: 25}, {Width: 102, Height: 34}}}
		}
	}
	e, err := executor(transport, config, at)
	if err != nil {
		return err
	}
	return e.StreamWithContext(context.Background(), options)
}

func dialer(transport string, config *rest.Config, at *url.URL) (httpstream.Dialer, error) {
	if transport == "websocket" {
		return portforward.NewSPDYOverWebsocketDialer(at, config)
	}
	tripper, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	return spdy.NewDialer(upgrader, &http.Client{Transport: tripper}, "POST", at), nil
}

func forward(transport string, config *rest.Config, at *url.URL, ports string) error {
	d, err := dialer(transport, config, at)
	if err != nil {
		return err
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.New(d, []string{ports}, stop, ready, io.Discard, os.Stderr)
	if err != nil {
		return err
	}
	go func() {
		<-ready
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	return f.ForwardPorts()
}

func run(words []string) error {
	if len(words) < 3 {
		return errors.New("exec|forward spdy|websocket URL ...")
	}
	at, err := url.Parse(words[2])
	if err != nil {
		return err
	}
	config := &rest.Config{Host: at.Scheme + "://" + at.Host, BearerToken: os.Getenv("TOKEN")}
	config.TLSClientConfig.Insecure = at.Scheme == "https"
	if words[0] == "exec" {
		return execute(words[1], config, at, words[3:])
	}
	return forward(words[1], config, at, words[3])
}

func main() {
	err := run(os.Args[1:])
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		os.Exit(exit.Code)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
}
