package github

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// App is a GitHub App that is installed in an organisation.
type App struct {
	// ID is the App's: its client id, or its number.
	ID string
	// Installation is the number of the installation: the repositories that it has are those
	// that we may change.
	Installation int64
	// KeyFile has the App's private key, RSA in PEM. It is read for each token, so that it can
	// be replaced.
	KeyFile string
}

const (
	// jwtFor is how long we speak as the App, of ten minutes that GitHub allows, from skew ago on:
	// its clock may be behind ours.
	jwtFor = 9 * time.Minute
	skew   = time.Minute
	// early is how long before its end a token is replaced, of an hour that it is good for: a
	// request on its way has that long.
	early = 5 * time.Minute
	// least is how long a token is used whose end is not told, or is past by our clock: another
	// one for each request would use up what GitHub allows, and one that has ended is refused.
	least = time.Minute
)

// app makes the tokens of an installation. It is safe for concurrent use.
type app struct {
	cfg  App
	now  func() time.Time
	rest *rest.Client

	// mu is held while a token is made, so that all who wait for one have the same.
	mu    sync.Mutex
	token string
	// until is how long the token is used.
	until time.Time
	// may has the names of repositories that were found in the installation.
	may map[string]bool
}

// appID is the form of a client id, and of a number.
var appID = pattern.New(`^[A-Za-z0-9._-]{1,64}$`)

// newApp returns the tokens of an App, whose installation may not be known yet,
// or an error that names the setting.
func newApp(cfg *App, on rest.Config) (*app, error) {
	a := &app{cfg: *cfg, now: on.Now, may: map[string]bool{}}
	if !appID.MatchString(cfg.ID) {
		return nil, fmt.Errorf("app.id: %.50q is neither a client id nor a number", cfg.ID)
	}
	if _, err := a.key(); err != nil {
		return nil, err
	}
	on.Authorize = func(context.Context) (string, error) { return a.jwt() }
	on.Keep = false // a token is made anew each time
	on.Denied = func(code int, message string) string {
		if code == http.StatusUnauthorized {
			return "GitHub does not take the word of the App: app.id and app.key_file have to be of one App, and the clock of this machine has to be right"
		}
		return denied(code, message)
	}
	a.rest = rest.New(on)
	return a, nil
}

// key reads the private key. GitHub gives one in the form of PKCS #1; those of other tools
// are PKCS #8.
func (a *app) key() (*rsa.PrivateKey, error) {
	text, err := os.ReadFile(a.cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("app.key_file: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("app.key_file: it holds no private key in PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if key, ok := parsed.(*rsa.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, errors.New("app.key_file: its key is not one of RSA")
}

// jwt returns the authorization of the App itself, which GitHub takes for its own affairs
// alone.
func (a *app) jwt() (string, error) {
	key, err := a.key()
	if err != nil {
		return "", err
	}
	from := a.now().Add(-skew)
	claims, err := json.Marshal(map[string]any{"iat": from.Unix(), "exp": from.Add(jwtFor).Unix(), "iss": a.cfg.ID})
	if err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding.EncodeToString
	text := enc([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + enc(claims)
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("app.key_file: %w", err)
	}
	return "Bearer " + text + "." + enc(signature), nil
}

// authorize returns the authorization of the installation, with a token that is good for a
// while.
func (a *app) authorize(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now().Before(a.until) {
		return "Bearer " + a.token, nil
	}
	var got struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires_at"`
	}
	path := "/app/installations/" + strconv.FormatInt(a.cfg.Installation, 10) + "/access_tokens"
	if err := a.rest.Call(ctx, http.MethodPost, path, nil, &got); err != nil {
		return "", fmt.Errorf("a token of the App's installation %d: %w", a.cfg.Installation, err)
	}
	if got.Token == "" {
		return "", fmt.Errorf("a token of the App's installation %d: the answer has none", a.cfg.Installation)
	}
	a.token, a.until = got.Token, got.Expires.Add(-early)
	if soonest := a.now().Add(least); a.until.Before(soonest) {
		a.until = soonest
	}
	return "Bearer " + a.token, nil
}

// renew forgets a token that GitHub does not take any more, such as one that was revoked.
func (a *app) renew(authorization string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if authorization == "Bearer "+a.token {
		a.token, a.until = "", time.Time{}
	}
	return true
}

// covers returns an error if a repository is not in our installation. Its token reads every
// public repository, and so would read what strangers write in one that has a name of ours
// by now.
func (a *app) covers(ctx context.Context, repository string) error {
	a.mu.Lock()
	known := a.may[repository]
	a.mu.Unlock()
	if known {
		return nil
	}
	path, err := rest.Path(repository, "installation")
	if err != nil {
		return err
	}
	var got struct {
		ID int64 `json:"id"`
	}
	if err := a.rest.Call(ctx, http.MethodGet, path, nil, &got); err != nil {
		return fmt.Errorf("the App's installation in %s: %w", repository, err)
	}
	if got.ID != a.cfg.Installation {
		return fmt.Errorf("%w: %s is in the App's installation %d, and the settings name %d", forges.ErrDenied, repository, got.ID, a.cfg.Installation)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.may[repository] = true
	return nil
}
