package connect

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

func TestConnection(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(".config/nats/context/org.json", `{"url":"nats://org:4222","token":"t","description":"x"}`)
	write(".config/nats/context/creds.json", `{"url":"nats://org:4222","creds":"/a.creds"}`)
	write(".config/nats/context/password.json", `{"url":"nats://org:4222","user":"u","password":"p"}`)
	write(".config/nats/context/empty.json", `{}`)
	write(".config/nats/context/broken.json", `{`)
	write(".config/nats/context/key.json", `{"url":"nats://org:4222","token":"t","inbox_prefix":"_INBOX_mine"}`)
	_, text, err := access.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	seed := write("seed", string(text))
	token, empty := write("token", " secret\n"), write("empty", "\n")

	for name, test := range map[string]struct {
		where kit.Where
		want  bus.Config
		err   string // part of it
	}{
		"url":              {kit.Where{Server: "nats://a:1"}, bus.Config{URL: "nats://a:1"}, ""},
		"token file":       {kit.Where{Server: "nats://a:1", TokenFile: token}, bus.Config{URL: "nats://a:1", Token: "secret"}, ""},
		"credentials":      {kit.Where{Server: "nats://a:1", Creds: "/b.creds"}, bus.Config{URL: "nats://a:1", Creds: "/b.creds"}, ""},
		"context":          {kit.Where{Context: "org"}, bus.Config{URL: "nats://org:4222", Token: "t"}, ""},
		"context, flag":    {kit.Where{Context: "creds", Creds: "/b.creds"}, bus.Config{URL: "nats://org:4222", Creds: "/b.creds"}, ""},
		"nkey":             {kit.Where{Server: "nats://a:1", NKey: seed}, bus.Config{URL: "nats://a:1", NKey: seed, InboxPrefix: "_INBOX_operator"}, ""},
		"person":           {kit.Where{Server: "nats://a:1", NKey: seed, Person: "ada"}, bus.Config{URL: "nats://a:1", NKey: seed, InboxPrefix: "_INBOX_ada"}, ""},
		"context, nkey":    {kit.Where{Context: "key", NKey: seed}, bus.Config{URL: "nats://org:4222", NKey: seed, InboxPrefix: "_INBOX_mine"}, ""},
		"bad person":       {kit.Where{Server: "nats://a:1", NKey: seed, Person: "a.b"}, bus.Config{}, "--person: name of the account"},
		"a service":        {kit.Where{Server: "nats://a:1", NKey: seed, Person: "runner"}, bus.Config{}, "taken by pfl-forge"},
		"no seed":          {kit.Where{Server: "nats://a:1", NKey: token}, bus.Config{}, "--nkey: " + token + " does not hold"},
		"nkey, user":       {kit.Where{Server: "nats://u:p@a:1", NKey: seed}, bus.Config{}, "--nkey: the server's URL names a user"},
		"no authority":     {kit.Where{Server: "nats://a:1", TLSCA: token}, bus.Config{}, "--tls-ca: "},
		"half a pair":      {kit.Where{Server: "nats://a:1", TLSKey: token}, bus.Config{}, "--tls-cert and --tls-key: give both"},
		"bad pair":         {kit.Where{Server: "nats://a:1", TLSCert: token, TLSKey: token}, bus.Config{}, "--tls-cert and --tls-key: "},
		"empty token":      {kit.Where{Server: "nats://a:1", TokenFile: empty}, bus.Config{}, "is empty"},
		"no token":         {kit.Where{Server: "nats://a:1", TokenFile: home + "/none"}, bus.Config{}, "--token-file"},
		"unknown context":  {kit.Where{Context: "none"}, bus.Config{}, "there is no NATS context none"},
		"outside":          {kit.Where{Context: "../org"}, bus.Config{}, "not a valid name of a NATS context"},
		"password":         {kit.Where{Context: "password"}, bus.Config{}, "use a token"},
		"context, no url":  {kit.Where{Context: "empty"}, bus.Config{}, "has no url"},
		"context, garbage": {kit.Where{Context: "broken"}, bus.Config{}, "broken.json"},
	} {
		app := &kit.App{Where: test.where, Getenv: func(key string) string { return map[string]string{"HOME": home}[key] }}
		got, err := NATS(app)
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %q", name, err, test.err)
			}
		case err != nil || !reflect.DeepEqual(got, test.want):
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, test.want)
		}
	}
}
