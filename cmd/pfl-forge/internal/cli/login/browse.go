package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/identity"
)

// outcome has the code with which the page of the issuer has led back, or the error.
type outcome struct {
	code string
	err  error
}

// browse has the person log in on the page of the issuer, which leads back to this
// machine, and returns a token that is bound to the key. The code that comes back is
// worth nothing without the verifier, which never leaves this process.
func browse(ctx context.Context, a *kit.App, issuer, client, key string) (string, error) {
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return "", fmt.Errorf("--issuer: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	cfg := oauth2.Config{
		ClientID: client, Endpoint: provider.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "email"},
		RedirectURL: "http://" + listener.Addr().String() + "/callback",
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	came := make(chan outcome, 1)
	server := &http.Server{Handler: callback(state, came), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	page := cfg.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oidc.Nonce(identity.Nonce(key)))
	a.Say("open this address in a browser on this machine:\n\n  %s\n", kit.Safe(page))
	var got outcome
	select {
	case got = <-came:
	case <-ctx.Done():
		return "", errors.New("the page of the issuer did not lead back in time")
	}
	if got.err != nil {
		return "", got.err
	}
	answer, err := cfg.Exchange(ctx, got.code, oauth2.VerifierOption(verifier))
	if err != nil {
		return "", fmt.Errorf("the issuer: %w", err)
	}
	token, _ := answer.Extra("id_token").(string)
	if token == "" {
		return "", errors.New("the issuer has sent no ID token")
	}
	return token, nil
}

// callback answers the browser that the page of the issuer leads back. A request
// with another state is not from that page: it is refused, and the login goes on.
func callback(state string, came chan<- outcome) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			http.Error(w, "this is not the login that was begun here", http.StatusBadRequest)
			return
		}
		got := outcome{code: q.Get("code")}
		if got.code == "" {
			got.err = fmt.Errorf("the issuer refuses: %s", kit.Safe(q.Get("error")))
		}
		select {
		case came <- got:
		default: // a second one
		}
		_, _ = fmt.Fprintln(w, "You can close this page.")
	})
	return mux
}
