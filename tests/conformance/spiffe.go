// SPDX-License-Identifier: Apache-2.0

// A client of the Workload API by go-spiffe: says who it is, speaks mutual TLS with itself by its own certificates, waits until they are
// renewed, and does it again.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffetls/tlsconfig"
	"github.com/spiffe/go-spiffe/v2/workloadapi"
)

func fail(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func talk(source *workloadapi.X509Source) {
	svid, err := source.GetX509SVID()
	fail("identity", err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", tlsconfig.MTLSServerConfig(source, source, tlsconfig.AuthorizeID(svid.ID)))
	fail("listen", err)
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		fail("accept", err)
		_, err = io.WriteString(conn, "hello")
		fail("write", err)
		conn.Close()
	}()
	raw, err := net.Dial("tcp", listener.Addr().String())
	fail("dial", err)
	conn := tls.Client(raw, tlsconfig.MTLSClientConfig(source, source, tlsconfig.AuthorizeID(svid.ID)))
	said, err := io.ReadAll(conn)
	fail("read", err)
	fmt.Printf("%s %s %s\n", said, svid.ID, svid.Certificates[0].SerialNumber)
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	source, err := workloadapi.NewX509Source(ctx)
	fail("source", err)
	defer source.Close()
	talk(source)
	<-source.Updated()
	fail("renewal", source.WaitUntilUpdated(ctx))
	talk(source)
	all, err := workloadapi.FetchX509SVIDs(ctx)
	fail("identities", err)
	fmt.Printf("%d %s %s\n", len(all), all[1].Hint, all[1].ID)
}
