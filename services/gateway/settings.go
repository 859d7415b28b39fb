package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/services/gateway/console"
)

// Settings are those of a gateway's file.
type Settings struct {
	// Listen is the address of the outside, as host:port.
	Listen string `yaml:"listen"`
	// TLS are the files of a certificate; without them it speaks HTTP, behind what ends TLS.
	TLS TLS `yaml:"tls"`
	// Tokens is the path of the file of tokens, from the folder of this one; empty: the API
	// is not served.
	Tokens string `yaml:"tokens"`
	// Login has the tokens of an OpenID Connect issuer count for the API,
	// besides those of the file.
	Login *APILogin `yaml:"login"`
	// Console is for people with browsers; without its key it is not served.
	Console Console `yaml:"console"`
	// Hooks is the path of the file of hooks, from the folder of this one; empty: none is
	// served.
	Hooks string `yaml:"hooks"`
	// Forges is the path of the file of forges whose issues become intents, from the
	// folder of this one; empty: none is watched. Only one gateway may watch a forge.
	Forges string `yaml:"forges"`
	// Chats is the path of the file of chats whose people are told and decide,
	// from the folder of this one; empty: there is none.
	Chats string `yaml:"chats"`
	// PerSecond bounds the requests of one token in the long run; 0 stands for 20.
	PerSecond float64 `yaml:"per_second"`
	// Burst is how many requests of one token may come at once; 0 stands for 60.
	Burst int `yaml:"burst"`
	// Followers bounds those who follow changes at the same time, each of whom has a
	// connection; 0 stands for 200.
	Followers int `yaml:"followers"`
}

// TLS names the files of a certificate and its key.
type TLS struct {
	// Cert is the path of the certificate, with those between it and its authority.
	Cert string `yaml:"cert"`
	// Key is the path of its key.
	Key string `yaml:"key"`
}

// Console are the settings of the web console.
type Console struct {
	// Key is the path of the file with the key of its sessions, from the folder of the
	// settings. It is made if it is missing; gateways behind one address share it.
	Key string `yaml:"key"`
	// Projects are those that are shown to people with roles in every project.
	Projects []string `yaml:"projects"`
	// TraceURL is where people read traces, with {trace_id} for the id; empty:
	// the console has no links to them.
	TraceURL string `yaml:"trace_url"`
	// Login has people sign in with their account at an OpenID Connect issuer,
	// besides with a token.
	Login *Login `yaml:"login"`
}

// Login are the settings of an issuer with whose accounts people sign in to the console.
type Login struct {
	// Name is that of the issuer among people: "Sign in with" stands before it.
	Name string `yaml:"name"`
	// Issuer is its URL, as its tokens have it.
	Issuer string `yaml:"issuer"`
	// ClientID is the id by which it knows the console, and ClientSecret the path of the file
	// of the secret that it gave, from the folder of the settings; empty where it gave none.
	ClientID     string `yaml:"client_id"`
	ClientSecret string `yaml:"client_secret"`
	// Claim names the claim that entries of the file of tokens have as login; empty stands for sub.
	Claim string `yaml:"claim"`
	// CA is the path of a file with the authorities of its certificate; empty for the system's.
	CA string `yaml:"ca"`
	// Address is that of the console, as browsers have it, such as https://forge.example.com.
	Address string `yaml:"address"`
}

// check calls note with what is wrong, by field.
func (l *Login) check(note func(field, format string, args ...any)) {
	u, err := url.Parse(l.Address)
	if err != nil || u.Host == "" || u.Path != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1") {
		// Browsers send the cookies of the console to no other site without TLS.
		note("console.login.address", "%.100q is no address of a site by HTTPS, such as https://forge.example.com, or of this machine", l.Address)
	}
	if l.Name == "" || len(l.Name) > 100 {
		note("console.login.name", "is what people call the issuer, in at most 100 bytes")
	}
	if _, err := identity.NewSite(l.site()); err != nil {
		note("console.login", "%v", err)
	}
}

// site returns the settings of the Site.
func (l *Login) site() identity.SiteConfig {
	return identity.SiteConfig{
		Issuer: l.Issuer, Client: l.ClientID, SecretFile: l.ClientSecret, Claim: l.Claim, CA: l.CA, Back: l.Address + console.BackPath, Now: time.Now,
	}
}

// APILogin are the settings of an issuer whose tokens count for the API.
type APILogin struct {
	// Issuer is its URL, as its tokens have it.
	Issuer string `yaml:"issuer"`
	// ClientID is the id by which it knows the command line. Tokens for another one do not count.
	ClientID string `yaml:"client_id"`
	// Claim names the claim that entries of the file of tokens have as login; empty stands for sub.
	Claim string `yaml:"claim"`
	// CA is the path of a file with the authorities of its certificate; empty for the system's.
	CA string `yaml:"ca"`
}

// bearer returns the verifier of its tokens.
func (l *APILogin) bearer() (*identity.Bearer, error) {
	return identity.NewBearer(identity.SiteConfig{Issuer: l.Issuer, Client: l.ClientID, Claim: l.Claim, CA: l.CA, Now: time.Now})
}

// checkLogin calls note with what is wrong with the issuer whose tokens count,
// by field. The logins of entries are names at one issuer: at another one, or
// by another claim, the same name may be that of another person.
func (s *Settings) checkLogin(note func(field, format string, args ...any)) {
	l, shown := s.Login, s.Console.Login
	if l == nil {
		return
	}
	if s.Tokens == "" {
		note("login", "wants tokens: the roles of its people are in that file")
	}
	if shown != nil && (shown.Issuer != l.Issuer || cmp.Or(shown.Claim, identity.DefaultClaim) != cmp.Or(l.Claim, identity.DefaultClaim)) {
		note("login", "has another issuer or claim than console.login: the logins of the file of tokens can be the names of one alone")
	}
	if _, err := l.bearer(); err != nil {
		note("login", "%v", err)
	}
}

// ReadSettings reads a gateway's file. What is wrong is told by field, with its line.
func ReadSettings(path string) (*Settings, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	// Whoever wants to be reached from elsewhere has to say so.
	s := Settings{Listen: "127.0.0.1:8080"}
	pos, err := strictyaml.Decode(data, &s, strictyaml.Options{File: filepath.Base(path)})
	if err != nil {
		return nil, err
	}
	var wrong []error
	note := func(field, format string, args ...any) {
		wrong = append(wrong, pos.Errorf(field, "%s", fmt.Sprintf(format, args...)))
	}
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		note("listen", "is no address such as 0.0.0.0:8443: %v", err)
	}
	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		note("tls", "give cert and key, or none of them")
	}
	if s.PerSecond < 0 || s.Burst < 0 || s.Followers < 0 {
		note("per_second", "per_second, burst and followers cannot be negative")
	}
	if s.Chats != "" && s.Tokens == "" {
		note("chats", "wants tokens: the roles of its people are in that file")
	}
	s.checkConsole(note)
	login, api := s.Console.Login, s.Login
	if login == nil {
		login = &Login{}
	}
	if api == nil {
		api = &APILogin{}
	}
	// A file that is moved together with the files that it names stays right.
	for _, p := range []*string{
		&s.Tokens, &s.Hooks, &s.Forges, &s.Chats, &s.Console.Key, &s.TLS.Cert, &s.TLS.Key, &login.ClientSecret, &login.CA, &api.CA,
	} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	if s.Console.Login != nil {
		login.check(note)
	}
	s.checkLogin(note)
	return &s, errors.Join(wrong...)
}

// checkConsole calls note with what is wrong with the console, by field.
func (s *Settings) checkConsole(note func(field, format string, args ...any)) {
	if s.Console.Key != "" && s.Tokens == "" {
		note("console", "wants tokens: people sign in with a token of that file")
	}
	if s.Console.Key == "" && (len(s.Console.Projects) > 0 || s.Console.Login != nil) {
		note("console", "has no key: without one the console is not served")
	}
	if _, err := telemetry.ParseTraceURL(s.Console.TraceURL); err != nil {
		note("console.trace_url", "%v", err)
	}
	for _, p := range s.Console.Projects {
		if _, err := forge.ParseProjectID(p); err != nil {
			note("console.projects", "%.60q: %v", p, err)
		}
	}
}
