// SPDX-License-Identifier: Apache-2.0

// A vCenter of other people (govmomi's simulator) on loopback, over TLS: says the URL, the SHA-256 of its certificate, and the path of a
// file with it; ends with its standard input.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/vmware/govmomi/simulator"
)

func main() {
	model := simulator.VPX()
	if err := model.Create(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	model.Service.Listen = &url.URL{Scheme: "https", Host: "127.0.0.1:0", User: url.UserPassword("node", "se<&>cret")}
	model.Service.TLS = new(tls.Config)
	server := model.Service.NewServer()
	sum := sha256.Sum256(server.Certificate().Raw)
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = fmt.Sprintf("%02X", b)
	}
	file, err := server.CertificateFile()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("https://"+server.URL.Host+server.URL.Path, strings.Join(parts, ":"), file)
	_, _ = io.Copy(io.Discard, os.Stdin)
	server.Close()
	model.Remove()
}
