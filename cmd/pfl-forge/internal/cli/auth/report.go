package auth

import (
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// document says what was written. It holds no secrets.
type document struct {
	Written  []string     `json:"written"       yaml:"written"`
	Accounts []accountDoc `json:"accounts"      yaml:"accounts"`
	TLS      *tlsDoc      `json:"tls,omitempty" yaml:"tls,omitempty"` // of a new certificate
}

// accountDoc describes one account.
type accountDoc struct {
	Name      string   `json:"name"               yaml:"name"`
	Role      string   `json:"role"               yaml:"role"`
	Projects  []string `json:"projects,omitempty" yaml:"projects,omitempty"`
	PublicKey string   `json:"public_key"         yaml:"public_key"`
	Renewed   bool     `json:"renewed"            yaml:"renewed"`
}

// tlsDoc describes the server's certificate.
type tlsDoc struct {
	Names []string  `json:"names" yaml:"names"`
	Until time.Time `json:"until" yaml:"until"`
}

// report prints the secrets that were written, and the accounts. Without --out the
// Secrets are on standard output, and people are told on standard error. What to do
// next, such as a restart that new keys need, is said on standard error. With -o name,
// and without a format, standard output has the names of what was written, a line each.
func report(a *kit.App, o *options, p *plan, written []string) error {
	doc := document{Written: written}
	var renewed []string
	for i := range p.users {
		u := &p.users[i]
		one := accountDoc{Name: u.Name, Role: string(u.Role), PublicKey: u.Public(), Renewed: p.renewed[u.Name]}
		for _, id := range u.Projects {
			one.Projects = append(one.Projects, string(id))
		}
		doc.Accounts = append(doc.Accounts, one)
		if one.Renewed {
			renewed = append(renewed, u.Name)
		}
	}
	if p.tls != nil {
		doc.TLS = &tlsDoc{Names: serverNames(o), Until: p.tls.Until()}
	}
	if len(renewed) > 0 {
		a.Say("new keys: %s", strings.Join(renewed, ", "))
	}
	if doc.TLS != nil {
		a.Say("the server's certificate is good until %s: renew it before by --role server", doc.TLS.Until.Format(time.DateOnly))
	}
	if len(renewed) > 0 && access.Find(p.users, string(access.Auth)) >= 0 {
		a.Say("restart the NATS servers, one after the other: with logins they read new keys at their start alone, and refuse to reload them")
	}
	if o.kubernetes && o.out == "" {
		return nil
	}
	return a.Print(o.format, doc, written, func() error {
		for _, name := range written {
			if _, err := fmt.Fprintln(a.Out, name); err != nil {
				return err
			}
		}
		return nil
	})
}
