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
		"169.254.169.254": {}, "fe80::1": {}, "::ffff:169.254.169.254": {}, "64:ff9b::169.254.169.254": {}, "fd00:ec2::254": {}, "100.100.100.200": {},
	} {
		a := netip.MustParseAddr(address)
		if got := [2]bool{(&rest.Guard{}).Allows(a), (&rest.Guard{Private: true}).Allows(a)}; got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

// TestGuardedCall: the connection is not made, and the error says why and not where to.
func TestGuardedCall(t *testing.T) {
	base, err := url.Parse("https://169.254.169.254")
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
		t.Error(err)
	}
}
