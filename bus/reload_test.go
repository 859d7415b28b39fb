package bus_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/pfl-forge/pfl-forge/bus/access"
)

// TestReloadWithLogins: a server reads auth.conf again, with keys that were renewed and
// accounts that were added, unless it asks the auth service: the accounts about which it does
// not ask are among what nats-server reads at its start alone. The operators' guide says so.
func TestReloadWithLogins(t *testing.T) {
	t.Parallel()
	seedOfAuth, keys := []byte(nil), map[string]string{}
	renew := func(name string) {
		public, seed, err := access.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = public
		if name == string(access.Auth) {
			seedOfAuth = seed
		}
	}
	conf := func(names ...string) string {
		var users []access.User
		for _, name := range names {
			u := access.User{Account: access.Account{Name: name, Role: access.Role(name)}, Proof: access.NKey(keys[name])}
			if u.Role == access.Auth {
				pair, err := access.Issuer(seedOfAuth)
				if err != nil {
					t.Fatal(err)
				}
				if u.Issuer, err = pair.PublicKey(); err != nil {
					t.Fatal(err)
				}
			}
			users = append(users, u)
		}
		return access.Conf(users, access.Accounts(users))
	}
	for _, name := range []string{"runner", "analyzer", "auth"} {
		renew(name)
	}
	without, more, with := conf("runner"), conf("runner", "analyzer"), conf("runner", "auth")
	renew("runner")
	for what, c := range map[string]struct {
		before, after string
		fine          bool
	}{
		"a key is renewed":              {without, conf("runner"), true},
		"an account is added":           {without, more, true},
		"logins are added":              {without, with, false},
		"a key is renewed with logins":  {with, conf("runner", "auth"), false},
		"an account is added to logins": {with, conf("runner", "analyzer", "auth"), false},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, readConf(t, dir, c.before))
			err := s.ReloadOptions(readConf(t, dir, c.after))
			if (err == nil) != c.fine || err != nil && !strings.Contains(err.Error(), "AuthCallout") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// readConf returns the options of a server in a folder with a configuration.
func readConf(t *testing.T, dir, text string) *server.Options {
	t.Helper()
	path := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opts.Host, opts.Port, opts.JetStream, opts.StoreDir, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, filepath.Join(dir, "data"), true, true
	return opts
}
