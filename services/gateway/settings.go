package gateway

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
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
	// Console is for people with browsers; without its key it is not served.
	Console Console `yaml:"console"`
	// Hooks is the path of the file of hooks, from the folder of this one; empty: none is
	// served.
	Hooks string `yaml:"hooks"`
	// Forges is the path of the file of forges whose issues become intents, from the folder of this one; empty: none is watched.
	// Only one gateway may watch a forge.
	Forges string `yaml:"forges"`
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
	// Key is the path of the file with the key of its sessions, from the folder of the settings. It is made if it is missing;
	// gateways behind one address share it.
	Key string `yaml:"key"`
	// Projects are those that are shown to people with roles in every project.
	Projects []string `yaml:"projects"`
	// TraceURL is where people read traces, with {trace_id} for the id; empty: the console has no links to them.
	TraceURL string `yaml:"trace_url"`
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
	if s.Console.Key != "" && s.Tokens == "" {
		note("console", "wants tokens: people sign in with a token of that file")
	}
	if s.Console.Key == "" && len(s.Console.Projects) > 0 {
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
	// A file that is moved together with the files that it names stays right.
	for _, p := range []*string{&s.Tokens, &s.Hooks, &s.Forges, &s.Console.Key, &s.TLS.Cert, &s.TLS.Key} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	return &s, errors.Join(wrong...)
}
