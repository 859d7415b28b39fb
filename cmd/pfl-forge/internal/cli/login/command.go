// Package login begins and ends logins at an organisation's pfl-forge, by an OpenID
// Connect issuer: the commands login, whoami and logout.
//
// At NATS a key of this machine is certified by the auth service; at a gateway the
// issuer's token itself is kept (internal/overhttp/login). Package target uses the
// login of an address for every other command. The browser returns to a listener on
// 127.0.0.1, and a code counts only for the login that asked for it, by state and PKCE.
package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/connect"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/overhttp/login"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/proof"
)

const loginHelp = `Log in at the issuer of an organisation. Every command with the same --server uses the login then,
without further credentials. At a server of NATS a key of this machine is certified for some hours; at
a gateway, whose address begins with https://, the token of the issuer is kept, and refreshed when it is
about to expire, as long as the issuer does that; so is where the files of --tls-ca and --issuer-ca are.

The page of the issuer is printed as an address: open it in a browser on this machine. Where there is
no browser, such as in CI, --id-token names a file with a token of the issuer; - is standard input.

An issuer whose certificate is of an authority of your organisation is known by --issuer-ca, and the
server itself by --tls-ca.`

const loginExample = `  pfl-forge login --server nats://nats.example.com --issuer https://login.example.com --client-id pfl-forge
  pfl-forge login --server https://forge.example.com --issuer https://login.example.com --client-id pfl-forge
  printf %s "$ID_TOKEN" | pfl-forge login --server nats://nats.example.com --id-token -`

// options are the flags of login. Empty ones are filled in from the environment by check.
type options struct {
	// issuer is the URL of the OpenID Connect issuer, and client the id that pfl-forge has there.
	// issuerCA is a file with authorities for the issuer's certificate; empty for the system's.
	// token is a file with a token that the issuer gave elsewhere, or - for standard input; empty
	// to use a browser.
	issuer, client, issuerCA, token string
	// wait bounds the whole login, the time that the person takes on the page included.
	wait   time.Duration
	format render.Format
}

// Command returns the command login.
func Command(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "login",
		Short:   "log in at an organisation's pfl-forge",
		Long:    loginHelp,
		Example: loginExample,
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(a); err != nil {
				return kit.Usage(err)
			}
			return begin(cmd.Context(), a, &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.issuer, "issuer", "", "`URL` of the issuer; default: $FORGE_OIDC_ISSUER")
	flags.StringVar(&o.client, "client-id", "", "`id` of pfl-forge at the issuer; default: $FORGE_OIDC_CLIENT_ID")
	flags.StringVar(&o.issuerCA, "issuer-ca", "", "`file` with the authorities of the issuer's certificate; default: $FORGE_OIDC_CA, or the system's")
	flags.StringVar(&o.token, "id-token", "", "`file` with a token of the issuer, instead of its page; - for standard input")
	flags.DurationVar(&o.wait, "wait", 5*time.Minute, "how long to wait for the page and the server")
	kit.OutputFlag(cmd, &o.format)
	for _, name := range []string{"issuer", "client-id", "wait"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	cmd.MarkFlagsMutuallyExclusive("id-token", "issuer")
	return cmd
}

// check fills in what the environment says, and refuses flags that are missing. The environment's
// issuer does not count beside a token, which names its own. Whether the issuer exists is found
// out when it is asked.
func (o *options) check(a *kit.App) error {
	if o.token == "" && o.issuer == "" {
		o.issuer = a.Getenv("FORGE_OIDC_ISSUER")
	}
	if o.client == "" {
		o.client = a.Getenv("FORGE_OIDC_CLIENT_ID")
	}
	if o.issuerCA == "" {
		o.issuerCA = a.Getenv("FORGE_OIDC_CA")
	}
	if err := (bus.TLS{CA: o.issuerCA}).Check(); err != nil {
		return fmt.Errorf("--issuer-ca: %w", err)
	}
	switch {
	case !a.Remote():
		return errors.New("--server is missing: the URL of the organisation's NATS or gateway; in a repository of your own there is nothing to log in to")
	case o.token == "" && (o.issuer == "" || o.client == ""):
		return kit.Missing("--issuer and --client-id, or --id-token")
	}
	return nil
}

// begin logs in at what --server names, and prints who is logged in until when.
//
// At NATS the attempt is bound to a key that Begin makes first, because the token has to name the
// key that it is good for: the browser is opened, or the token read, in the function that Begin
// calls. A former login stays until the new one is there.
func begin(ctx context.Context, a *kit.App, o *options) error {
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	if a.ByHTTP() {
		return beginByHTTP(ctx, a, o)
	}
	cfg, folder, err := connect.LoginAt(a)
	if err != nil {
		return err
	}
	c, err := folder.Begin(ctx, cfg, func(key string) (string, error) {
		if o.token != "" {
			return given(a, o.token)
		}
		granted, err := browse(ctx, a, o, identity.NewAttempt(key), false)
		return granted.Token, err
	})
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	return show(a, o.format, certified(&c))
}

// beginByHTTP logs in for a gateway. The token is bound to no key: what is sent by HTTP is not
// signed, so whoever has the token can use it until it expires, as any token of the gateway's
// file.
//
// Paths of authorities are made absolute before they are stored, because later commands run in
// other folders. They are checked first, so that no login is begun at a page that the commands
// after it could not use.
func beginByHTTP(ctx context.Context, a *kit.App, o *options) error {
	folder, err := connect.GatewayLogin(a)
	if err != nil {
		return err
	}
	ca, err := absolute(a.TLSCA)
	if err != nil {
		return fmt.Errorf("--tls-ca: %w", err)
	}
	if o.issuerCA, err = absolute(o.issuerCA); err != nil {
		return fmt.Errorf("--issuer-ca: %w", err)
	}
	if err := (bus.TLS{CA: ca}).Check(); err != nil {
		return fmt.Errorf("--tls-ca: %w", err)
	}
	var granted identity.Grant
	if o.token != "" {
		// A given token comes without a refresh token: the login ends when the token does.
		granted.Token, err = given(a, o.token)
	} else {
		granted, err = browse(ctx, a, o, identity.NewBearerAttempt(), true)
	}
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	l, err := login.New(login.At{Issuer: o.issuer, Client: o.client, IssuerCA: o.issuerCA}, granted, time.Now())
	if err == nil {
		l.CA = ca
		err = folder.Write(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	return show(a, o.format, tokenOf(&l))
}

// absolute returns the path of a file as it is found from any folder; empty for none.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// maxGiven bounds a token that is read, in bytes: one from an issuer has a few thousand.
const maxGiven = 64 << 10

// given returns the token in a file, or on standard input for -, without white space around it. An
// empty one is an error here, with the flag's name, and not a refusal of the server's later.
func given(a *kit.App, name string) (string, error) {
	in := a.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("--id-token: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxGiven))
	if err != nil {
		return "", fmt.Errorf("--id-token: %w", err)
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return "", errors.New("--id-token: there is no token in it")
	}
	return strings.TrimSpace(string(text)), nil
}

// document says who is logged in, as programs read it.
type document struct {
	// Account is the name that the organisation knows the person by, Issuer the URL of who vouches
	// for it, and Until the time at which the login ends unless it is refreshed.
	Account string    `json:"account" yaml:"account"`
	Issuer  string    `json:"issuer"  yaml:"issuer"`
	Until   time.Time `json:"until"   yaml:"until"`
}

// certified returns the document of a login at a server of NATS.
func certified(c *proof.Certificate) document { return document{c.Account, c.Login, c.Until} }

// tokenOf returns the document of a login at a gateway.
func tokenOf(l *login.Login) document { return document{l.Name, kit.Safe(l.Issuer), l.Until} }

// show prints who is logged in.
func show(a *kit.App, format render.Format, d document) error {
	return a.Print(format, d, []string{d.Account}, func() error {
		_, err := fmt.Fprintf(a.Out, "%s, by %s, until %s\n", d.Account, kit.Safe(d.Issuer), d.Until.Local().Format(time.DateTime))
		return err
	})
}

// WhoCommand returns the command whoami. It reads the login that this machine keeps and asks no
// server, so a login that was revoked there is still shown.
func WhoCommand(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "print who is logged in at an organisation's pfl-forge",
		Args:  kit.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, err := who(a)
			if err != nil {
				return err
			}
			return show(a, format, d)
		},
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// who returns who is logged in at the server or gateway that the flags name. That there is no
// login is an error, and so is one at NATS that has ended.
func who(a *kit.App) (document, error) {
	if a.ByHTTP() {
		folder, err := connect.GatewayLogin(a)
		if err != nil {
			return document{}, err
		}
		l, err := folder.Read()
		return tokenOf(&l), err
	}
	folder, err := at(a)
	if err != nil {
		return document{}, err
	}
	c, err := folder.Certificate()
	return certified(&c), err
}

// OutCommand returns the command logout. It removes what this machine keeps; a certificate or a
// token that was copied elsewhere is good until it expires.
func OutCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "remove the login from this machine",
		Args:  kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.ByHTTP() {
				folder, err := connect.GatewayLogin(a)
				if err != nil {
					return err
				}
				return folder.End(cmd.Context())
			}
			folder, err := at(a)
			if err != nil {
				return err
			}
			return folder.End()
		},
	}
}

// at returns the login at the server of NATS that the flags name.
func at(a *kit.App) (bus.Login, error) {
	if !a.Remote() {
		return "", kit.Usage(errors.New("--server is missing: give the URL of the organisation's NATS or gateway"))
	}
	_, folder, err := connect.LoginAt(a)
	return folder, err
}
