package auth

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth/authority"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth/secrets"
	"github.com/pfl-forge/pfl-forge/proof"
)

// consoleRole names the key of the gateway's console for --role.
const consoleRole = "console"

// consoleBytes is the length of the key of a console, which is written in hexadecimal.
const consoleBytes = 32

// plan is an installation as it is to be. Making it writes nothing; initialise writes what has
// changed.
type plan struct {
	users []access.User
	// changed are the secrets to write, and whole those together with what exists.
	changed, whole secrets.Set
	// renewed are the accounts with a new key.
	renewed map[string]bool
	// tls describes the server's certificate; nil without one.
	tls *authority.Certificate
}

// newPlan decides what is made new: everything where nothing exists.
//
// It writes nothing. Accounts are read from auth.conf, which is the only list of them; one
// that a person edited so that it has other users is refused, since they would be lost.
// auth.conf is always among the changed ones, as it follows from the accounts and from the
// permissions of this version: renewing one key brings all permissions up to date.
func newPlan(o *options, before secrets.Set) (*plan, error) {
	p := &plan{changed: secrets.Set{}, whole: maps.Clone(before), renewed: map[string]bool{}}
	if p.whole == nil {
		p.whole = secrets.Set{}
	}
	if conf := before[secrets.Server][secrets.Conf]; conf != nil {
		users, err := access.ParseConf(string(conf))
		if err != nil {
			return nil, fmt.Errorf("%s: %w; move it away to begin anew", secrets.Conf, err)
		}
		p.users = users
	}
	exists := len(p.users) > 0
	added, err := o.accounts()
	if err != nil {
		return nil, err
	}
	added = append(added, p.single(o)...)
	if !exists {
		added = append(basis(), added...)
	}
	if err := wanted(o, exists, len(added), before); err != nil {
		return nil, err
	}
	if err := p.keys(o, added); err != nil {
		return nil, err
	}
	if err := p.trusted(before); err != nil {
		return nil, err
	}
	p.console(o)
	if !o.noTLS && (!exists || o.force || slices.Contains(o.renew, secrets.Server)) {
		if err := p.certify(o); err != nil {
			return nil, err
		}
	}
	p.entry(secrets.Server, secrets.Conf, []byte(access.Conf(p.users, access.Accounts(p.users))))
	return p, nil
}

// wanted returns an error where the flags ask for nothing that can be done,
// with so many accounts to add to what exists.
func wanted(o *options, exists bool, added int, before secrets.Set) error {
	switch {
	case !exists && len(o.renew) > 0:
		return errors.New("--role: nothing exists yet that could be renewed: leave it out, or say with --out or --from where it is")
	case exists && added+len(o.renew) == 0 && !o.force && !(o.kubernetes && o.gateway && before[secrets.Console] == nil):
		return errors.New("credentials exist already: give --role to renew one of them, " +
			"--person, --system, --follower, --logins, --backups or --gateway to add one, " +
			"or --force to renew all")
	}
	return nil
}

// single returns the accounts that flags ask for by role, as far as there are none yet.
// They are sorted by name, so that two calls with the same flags write the same.
func (p *plan) single(o *options) []access.Account {
	var list []access.Account
	for role, wanted := range map[access.Role]bool{access.Auth: o.logins, access.Backup: o.backups, access.Gateway: o.gateway} {
		if wanted && access.Find(p.users, string(role)) < 0 {
			list = append(list, access.Account{Name: string(role), Role: role})
		}
	}
	slices.SortFunc(list, func(a, b access.Account) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// console makes the key by which the replicas of a gateway make sessions of its
// console, so that a session holds at each of them and after a restart. A gateway whose
// settings are a file of its own machine makes that key itself. A renewed key ends all
// sessions of the console, so a call that is about something else never renews it.
func (p *plan) console(o *options) {
	if !o.kubernetes || access.Find(p.users, string(access.Gateway)) < 0 {
		return
	}
	if p.whole[secrets.Console] == nil && (o.gateway || p.renewed[string(access.Gateway)]) || o.force || slices.Contains(o.renew, consoleRole) {
		key := make([]byte, consoleBytes)
		_, _ = rand.Read(key) // it never fails
		p.entry(secrets.Console, secrets.ConsoleKey, []byte(hex.EncodeToString(key)+"\n"))
	}
}

// special reports whether a name for --role stands for something else than the key of an account.
// There is a key of the console only on Kubernetes, and with a gateway.
func (p *plan) special(o *options, name string) bool {
	return name == secrets.Server || name == consoleRole && o.kubernetes && access.Find(p.users, string(access.Gateway)) >= 0
}

// basis returns the accounts that every installation has.
// These are the five services, a person and a system that submits.
func basis() []access.Account {
	var list []access.Account
	for _, role := range access.Services() {
		list = append(list, access.Account{Name: string(role), Role: role})
	}
	return append(list,
		access.Account{Name: string(access.Operator), Role: access.Operator},
		access.Account{Name: string(access.Submitter), Role: access.Submitter},
	)
}

// keys makes the keys that are new. An account that exists and is added again is
// an error and not a renewal, which would lock out whoever has the key. A new
// key of the account auth changes who issues the credentials of logins as well.
func (p *plan) keys(o *options, added []access.Account) error {
	for _, account := range added {
		if access.Find(p.users, account.Name) >= 0 {
			return fmt.Errorf("account %q exists already: give --role %s to renew its key", account.Name, account.Name)
		}
		p.users = append(p.users, access.User{Account: account})
		p.renewed[account.Name] = true
	}
	for _, name := range o.renew {
		if access.Find(p.users, name) < 0 && !p.special(o, name) {
			return fmt.Errorf("--role: there is no account %q", name)
		}
		p.renewed[name] = access.Find(p.users, name) >= 0
	}
	for i := range p.users {
		u := &p.users[i]
		if !p.renewed[u.Name] && !o.force {
			continue
		}
		public, seed, err := access.NewKey()
		if err != nil {
			return fmt.Errorf("make an nkey: %w", err)
		}
		if err := p.trust(&u.Account, seed); err != nil {
			return err
		}
		p.renewed[u.Name] = true
		u.Proof = access.NKey(public)
		if u.Role == access.Auth {
			if u.Issuer, err = issuerOf(seed); err != nil {
				return err
			}
		}
		p.entry(u.Name, secrets.Seed, seed)
		if ca := p.whole[secrets.Server][secrets.CA]; ca != nil {
			p.entry(u.Name, secrets.CA, ca)
		}
	}
	return nil
}

// issuerOf returns the public key of the credentials that the account auth signs.
func issuerOf(seed []byte) (string, error) {
	pair, err := access.Issuer(seed)
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

// trust adds the signing key of an account, which follows from its new seed, to the
// trusted ones. The former key stays good for what it signed until now.
func (p *plan) trust(account *access.Account, seed []byte) error {
	if !proof.Sends(string(account.Role)) {
		return nil // it signs nothing
	}
	var list proof.Signers
	if text := p.whole[secrets.Signers][secrets.TrustedKeys]; text != nil {
		var err error
		if list, err = proof.ParseSigners(string(text)); err != nil {
			return fmt.Errorf("%s: %w; move it away to begin anew", secrets.TrustedKeys, err)
		}
	}
	key, err := proof.Derive(seed, account.Name)
	if err != nil {
		return err
	}
	p.entry(secrets.Signers, secrets.TrustedKeys, []byte(list.Renew(key.AccountSigner(string(account.Role)), time.Now().UTC().Truncate(time.Second)).String()))
	return nil
}

// trusted returns an error if the file of trusted keys would be begun anew
// without the keys of accounts that keep theirs: a runner that reads it takes
// no further word of them, and results of workers would wait for ever.
func (p *plan) trusted(before secrets.Set) error {
	if before[secrets.Signers][secrets.TrustedKeys] != nil || p.changed[secrets.Signers] == nil {
		return nil
	}
	var left []string
	for i := range p.users {
		if u := &p.users[i]; !p.renewed[u.Name] && proof.Sends(string(u.Role)) {
			left = append(left, u.Name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("there is %s, and no %s (Secret %s) with it: a new one would lack the keys of %s, and their word would not count; "+
		"put back the one that the runner has, or give --force to renew all keys",
		secrets.Conf, secrets.TrustedKeys, secrets.ObjectOf(secrets.Signers), strings.Join(left, ", "))
}

// certify makes the server's certificate, and the authority that signs it where
// none is given or kept. The authority's certificate goes to the accounts whose
// secrets are written anyhow; if it is kept, the others have it already.
func (p *plan) certify(o *options) error {
	now := time.Now()
	by, err := p.authority(o, now)
	if err != nil {
		return err
	}
	p.tls, err = by.Certify(serverNames(o), now)
	if err != nil {
		return err
	}
	p.entry(secrets.Server, secrets.Cert, p.tls.Cert)
	p.entry(secrets.Server, secrets.Key, p.tls.Key)
	p.entry(secrets.Server, secrets.CA, by.Cert)
	for i := range p.users {
		if name := p.users[i].Name; p.renewed[name] {
			p.entry(name, secrets.CA, by.Cert)
		}
	}
	return nil
}

// authority returns the one that is given, or kept from before, or a new one. A server's
// certificate without its authority is an error: a new authority would be unknown to all clients.
func (p *plan) authority(o *options, now time.Time) (*authority.Certificate, error) {
	kept := p.whole[secrets.Authority]
	switch {
	case o.caCert != "":
		return authority.Load(o.caCert, o.caKey)
	case kept != nil && !o.force:
		return authority.Parse(kept[secrets.CA], kept[secrets.CAKey])
	case len(p.whole[secrets.Server][secrets.Cert]) > 0 && !o.force:
		return nil, errors.New("--role server: the authority that signed the certificate is not here: give --ca-cert and --ca-key")
	}
	made, err := authority.New(now)
	if err != nil {
		return nil, err
	}
	p.entry(secrets.Authority, secrets.CA, made.Cert)
	p.entry(secrets.Authority, secrets.CAKey, made.Key)
	return made, nil
}

// entry sets an entry of a secret, which is written then with all its entries.
// The other entries stay. The secrets that were read are not altered.
func (p *plan) entry(name, key string, content []byte) {
	entries := maps.Clone(p.whole[name])
	if entries == nil {
		entries = map[string][]byte{}
	}
	entries[key] = content
	p.whole[name], p.changed[name] = entries, entries
}

// serverNames returns the names and addresses by which clients reach the server. On
// Kubernetes these are the two services of deploy's NATS in every spelling that a client in
// the cluster may use, and each pod behind them. The machine itself is always among them.
func serverNames(o *options) []string {
	var names []string
	if o.kubernetes {
		for _, service := range []string{"nats", "nats-headless"} {
			for _, suffix := range []string{"", "." + o.namespace, "." + o.namespace + ".svc", "." + o.namespace + ".svc.cluster.local"} {
				names = append(names, service+suffix, "*."+service+suffix)
			}
		}
	}
	return append(append(names, o.hosts...), "localhost", "127.0.0.1", "::1")
}
