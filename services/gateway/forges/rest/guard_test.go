package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// TestGuard has a row for each kind of address that another one may choose, in each form of it.
func TestGuard(t *testing.T) {
	for address, want := range map[string][2]bool{ // without Private, and with it
		"93.184.215.14": {true, true}, "2606:2800:21f:cb07::1": {true, true},
		"10.1.2.3": {false, true}, "172.16.0.1": {false, true}, "192.168.1.1": {false, true}, "fd12:3456::1": {false, true}, "100.64.0.1": {false, true},
		"::ffff:10.1.2.3": {false, true}, "64:ff9b::10.1.2.3": {false, true},
		"127.0.0.1": {}, "::1": {}, "0.0.0.0": {}, "::": {}, "::ffff:127.0.0.1": {}, "224.0.0.1": {}, "255.255.255.255": {},
		"192.0.0.192": {false, true}, "198.18.0.1": {false, true}, "240.0.0.1": {false, true}, "fec0::1": {false, true},
		"64:ff9b:1::a01:203": {false, true}, "2002:a01:203::1": {false, true},
		"2002:a9fe:a9fe::1": {}, "2002:5db8:d70e::1": {true, true},
		"::7f00:1":        {},
		"169.254.169.254": {}, "fe80::1": {}, "::ffff:169.254.169.254": {}, "64:ff9b::169.254.169.254": {}, "fd00:ec2::254": {}, "100.100.100.200": {},
	} {
		a := netip.MustParseAddr(address)
		if got := [2]bool{(&rest.Guard{}).Allows(a), (&rest.Guard{Private: true}).Allows(a)}; got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

// TestGuardedCall: the connection is not made, however the address is written,
// and the error says why and not where to.
func TestGuardedCall(t *testing.T) {
	for _, address := range []string{
		"https://169.254.169.254", "https://[::ffff:169.254.169.254]", "https://[fe80::1%25lo]", "https://169.254.169.254.",
		"https://2852039166", "https://0xa9fea9fe", "https://169.254.43518", "https://localhost.", "https://a.localhost",
		"https://１６９.２５４.１６９.２５４", "https://169。254。169。254", "https://ⓛocalhost.",
	} {
		base, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		c := rest.New(rest.Config{
			Name: "it", Base: base, Hide: true, Guard: &rest.Guard{Private: true}, Now: time.Now,
			Authorize: func(context.Context) (string, error) { return "", nil },
		})
		defer c.Close()
		err = c.Call(t.Context(), http.MethodPost, "/hunter2", map[string]string{}, nil)
		if !errors.Is(err, rest.ErrInside) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
