package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/etcd"
)

// A process joins the fleet of a cluster, and reserves memory on four devices of any machine.
func ExampleOpen() {
	reserve := func(ctx context.Context, dev *vram.Device, authority *x509.CertPool, own tls.Certificate) (err error) {
		books, err := etcd.Open(ctx, etcd.Config{
			Endpoints: []string{"https://a:2379", "https://b:2379", "https://c:2379"},
			TLS:       &tls.Config{RootCAs: authority, Certificates: []tls.Certificate{own}},
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, books.Close()) }()
		member, err := fleet.Join(ctx, books, fleet.Device{Device: dev})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, member.Close()) }()
		want := fleet.Want{Bytes: 8 << 30}
		grant, err := member.Reserve(ctx, fleet.Request{Wants: []fleet.Want{want, want, want, want}})
		if err != nil {
			return err
		}
		// the gang runs, until its end or the end of grant.Done()
		return grant.Release()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // there is no such cluster here
	fmt.Println(reserve(ctx, nil, nil, tls.Certificate{}))
	// Output: context canceled
}
