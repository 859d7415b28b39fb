package login

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/identity"
)

// patience is how long a browser may take for the page that ends a login.
const patience = 2 * time.Second

// browse has the person log in on the page of the issuer, which leads back to this machine, and
// returns what the issuer grants for the attempt. A login that stays asks for a refresh token as
// well.
//
// The way back is a listener on a free port of 127.0.0.1 (RFC 8252, 7.3), which is there before
// the address is printed and gone when the function returns. The code that comes back is worth
// nothing without the verifier (PKCE, RFC 7636), which never leaves this process. It ends with the
// context, whose deadline is the flag --wait.
func browse(ctx context.Context, a *kit.App, o *options, attempt identity.Attempt, stays bool) (identity.Grant, error) {
	none := identity.Grant{}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return none, err
	}
	site, err := identity.NewSite(identity.SiteConfig{
		Issuer: o.issuer, Client: o.client, CA: o.issuerCA, Back: "http://" + listener.Addr().String() + "/callback", Stays: stays, Now: time.Now,
	})
	if err != nil {
		_ = listener.Close()
		return none, fmt.Errorf("--issuer: %w", err)
	}
	// One callback is taken: the channel holds it even if this function has not got to reading
	// yet.
	came := make(chan url.Values, 1)
	server := &http.Server{Handler: callback(attempt.State, came), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer finish(server)
	page, err := site.Begin(ctx, attempt)
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return none, fmt.Errorf("--issuer: %w; --issuer-ca names a file with the authorities of your organisation", err)
	}
	if err != nil {
		return none, fmt.Errorf("--issuer: %w", err)
	}
	a.Say("open this address in a browser on this machine:\n\n  %s\n", kit.Safe(page))
	select {
	case query := <-came:
		return site.Token(ctx, attempt, query)
	case <-ctx.Done():
		return none, errors.New("no login was finished in the browser in time: log in again")
	}
}

// finish closes a server when it has written the answers that it has begun, so that
// the person who has logged in sees the page that says so and not a connection that
// is reset. A browser that takes no answer delays that by patience at most.
func finish(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = server.Shutdown(ctx)
	_ = server.Close()
}

// callback answers the browser that the page of the issuer leads back. A request with another
// state is not from that page: it is refused, and the login continues to wait. The state is
// compared in constant time, so that another program on this machine cannot guess it byte by byte.
func callback(state string, came chan<- url.Values) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			http.Error(w, "this is not the login that was begun here", http.StatusBadRequest)
			return
		}
		select {
		case came <- q:
		default: // a second one
		}
		_, _ = fmt.Fprintln(w, "You can close this page.")
	})
	return mux
}
