// Package settings reads the operator's file of chats, and makes a watcher of
// each. Everything that is wrong in the file is told at once, by field and line.
//
// # What is refused
//
//	a name that a hook has        whoever knows that hook's secret could store claims, and keep every gateway from acting
//	a name of a channel or account    names change hands; ids do not. The accounts of people are in the file of tokens
//	an address without TLS        a token, or an address that is a secret, would be there for all to read
//	people who cannot be heard    without a hook and Socket Mode their buttons would do nothing
//
// Accounts that are added to the file of tokens while the gateway runs count at once.
package settings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/environ"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/slack"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/webhook"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// The kinds of chats.
const (
	kindSlack   = "slack"
	kindWebhook = "webhook"
)

// entry are the settings of a chat.
type entry struct {
	// Name is the chat's in logs, in the journal and in the stream of
	// deliveries: an id as a project's.
	Name string `yaml:"name"`
	// Kind says how it speaks: slack or webhook.
	Kind string `yaml:"kind"`
	// URL is where the Web API of Slack begins; empty for Slack's own.
	URL string `yaml:"url"`
	// Team is the id of the workspace of Slack.
	Team string `yaml:"team"`
	// TokenFile is the path of the file with the bot's token, and AppTokenFile
	// that of the app's, with which Socket Mode is used.
	TokenFile    string `yaml:"token_file"`
	AppTokenFile string `yaml:"app_token_file"`
	// URLFile is the path of the file with the address of a webhook.
	URLFile string `yaml:"url_file"`
	// SecretFile is the path of the file with the key that signs what a webhook
	// gets; empty for none.
	SecretFile string `yaml:"secret_file"`
	// Private lets the address of a webhook be in a private network.
	Private bool `yaml:"private"`
	// Hooks are the names of the hooks through which Slack tells what people
	// do, in place of Socket Mode.
	Hooks []string `yaml:"hooks"`
	// Link begins the addresses of the console, such as https://forge.example.com.
	Link string `yaml:"link"`
	// Channels are those that are told.
	Channels []channel `yaml:"channels"`
	// SweepEvery is the time between two sweeps; 0 for 5 minutes.
	SweepEvery time.Duration `yaml:"sweep_every"`
}

// channel are the settings of a channel.
type channel struct {
	// Channel is its id; a webhook has none.
	Channel string `yaml:"channel"`
	// Projects are those whose intents are told and decided there.
	Projects []string `yaml:"projects"`
	// On are the kinds that begin a message: waiting, budget, failed, done; empty for all but done.
	On []notify.Kind `yaml:"on"`
	// Submit is the project for which people ask with a command there; empty: they cannot.
	Submit string `yaml:"submit"`
}

// Bounds of the file.
const (
	leastEvery  = 10 * time.Second
	maxChats    = 20
	maxChannels = 100
)

// Config has the doors and books of the gateway that the watchers share.
type Config struct {
	// Hooks are those that are mounted.
	Hooks []hooks.Hook
	// Gateway is the account on the bus.
	Gateway string
	Bus     *bus.Bus
	API     *api.API
	Tokens  *tokens.Book
	Log     *slog.Logger
}

// Loop is something that runs as long as the gateway does: a watcher, or a connection.
// One that fails is no reason to end the others, so the gateway runs it again.
type Loop struct {
	// Name is that of the chat.
	Name string
	Run  func(context.Context) error
}

// file is one that is being read.
type file struct {
	Config

	dir  string
	pos  *strictyaml.Positions
	errs strictyaml.Errors
	// alone says that there is one workspace of Slack at most, however many chats are in it.
	alone bool
}

// Read reads a file of chats, and returns all that is to run.
func Read(path string, cfg Config) ([]Loop, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var in struct {
		Chats []entry `yaml:"chats"`
	}
	f := &file{Config: cfg, dir: filepath.Dir(path)}
	if f.pos, err = strictyaml.Decode(data, &in, strictyaml.Options{File: filepath.Base(path)}); err != nil {
		return nil, err
	}
	if len(in.Chats) > maxChats {
		f.errs = append(f.errs, f.pos.Errorf("chats", "has %d chats; at most %d are allowed", len(in.Chats), maxChats))
	}
	teams := map[string]bool{}
	for i := range in.Chats {
		teams[in.Chats[i].Team] = true
	}
	delete(teams, "")
	f.alone = len(teams) <= 1
	var list []Loop
	for i := range in.Chats {
		e := &in.Chats[i]
		wrong := func(field, format string, args ...any) {
			f.errs = append(f.errs, f.pos.Errorf(fmt.Sprintf("chats[%d].%s", i, field), format, args...))
		}
		if slices.ContainsFunc(in.Chats[:i], func(o entry) bool { return o.Name == e.Name }) {
			wrong("name", "is there twice")
		}
		loops := f.chat(e, wrong)
		list = append(list, loops...)
	}
	if len(f.errs) > 0 {
		f.errs.Sort()
		return nil, f.errs
	}
	return list, nil
}

// path returns a path that is relative to the folder of the file.
func (f *file) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(f.dir, p)
}

// fails notes an error about a field of a chat.
type fails func(field, format string, args ...any)

// chat checks the settings of a chat, and returns what is to run for it.
func (f *file) chat(e *entry, wrong fails) []Loop {
	// Claims are stored under the name: no one outside may store anything there.
	if _, err := forge.ParseProjectID(e.Name); err != nil {
		wrong("name", "%.70q has to be of small letters, digits and hyphens", e.Name)
	} else if slices.ContainsFunc(f.Hooks, func(h hooks.Hook) bool { return h.Name == e.Name }) {
		wrong("name", "is that of a hook as well")
	}
	if e.SweepEvery != 0 && e.SweepEvery < leastEvery {
		wrong("sweep_every", "is %s; at least %s, or nothing", e.SweepEvery, leastEvery)
	}
	if u, err := url.Parse(e.Link); e.Link != "" && (err != nil || u.Host == "" || u.Path != "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http") {
		wrong("link", "%.100q is no address of a site, such as https://forge.example.com", e.Link)
	}
	// No message has one of our own tokens in it. One that is replaced later is
	// known by its shape alone.
	secrets := redact.New(redact.Environ(environ.All())...)
	for _, p := range []string{e.TokenFile, e.AppTokenFile, e.URLFile, e.SecretFile} {
		if text, err := os.ReadFile(f.path(p)); p != "" && err == nil {
			secrets.Know(strings.TrimSpace(string(text)))
		}
	}
	cfg := chat.Config{
		Name: e.Name, Gateway: f.Gateway, Team: e.Team, Channels: f.channels(e, wrong), Hooks: e.Hooks, Link: e.Link, API: f.API, Tokens: f.Tokens,
		Words: chat.Words{Secrets: secrets}, Log: f.Log, Every: e.SweepEvery,
	}
	if f.Bus != nil {
		cfg.Submissions, cfg.Deliveries, cfg.Changes = f.Bus.Submissions, f.Bus.Deliveries, f.Bus.Changes
	}
	switch e.Kind {
	case kindSlack:
		return f.slack(e, &cfg, wrong)
	case kindWebhook:
		return f.webhook(e, &cfg, secrets, wrong)
	}
	wrong("kind", "is %.50q; it can be %s or %s", e.Kind, kindSlack, kindWebhook)
	return nil
}

// channels checks the channels.
func (f *file) channels(e *entry, wrong fails) (list []chat.Channel) {
	if len(e.Channels) == 0 || len(e.Channels) > maxChannels {
		wrong("channels", "has %d channels; it needs one, and %d at most", len(e.Channels), maxChannels)
	}
	seen := map[string]bool{}
	for i := range e.Channels {
		in := &e.Channels[i]
		at := fmt.Sprintf("channels[%d].", i)
		c := chat.Channel{ID: in.Channel, On: in.On, Submit: forge.ProjectID(in.Submit)}
		if e.Kind == kindSlack {
			if err := slack.CheckChannel(in.Channel); err != nil {
				wrong(at+"channel", "%v", err)
			}
		}
		if seen[in.Channel] {
			wrong(at+"channel", "is there twice")
		}
		seen[in.Channel] = true
		if len(in.Projects) == 0 {
			wrong(at+"projects", "is empty: name the projects that are reported there")
		}
		for _, p := range in.Projects {
			id, err := forge.ParseProjectID(p)
			if err != nil {
				wrong(at+"projects", "%.60q: %v", p, err)
			}
			c.Projects = append(c.Projects, id)
		}
		for n, k := range in.On {
			if !slices.Contains(notify.Kinds(), k) {
				wrong(fmt.Sprintf("%son[%d]", at, n), "is %.40q; it can be waiting, budget, failed or done", k)
			}
		}
		// What is done is no news on which a person has to act, so a channel has to ask for it.
		if len(c.On) == 0 {
			c.On = []notify.Kind{notify.KindWaiting, notify.KindBudget, notify.KindFailed}
		}
		if in.Submit != "" && !slices.Contains(in.Projects, in.Submit) {
			wrong(at+"submit", "%.60q is not one of the projects of the channel", in.Submit)
		}
		list = append(list, c)
	}
	return list
}

// slack checks the settings of a workspace of Slack, and returns its watcher,
// and its connection where Socket Mode is used.
func (f *file) slack(e *entry, cfg *chat.Config, wrong fails) []Loop {
	for field, given := range map[string]bool{"url_file": e.URLFile != "", "secret_file": e.SecretFile != "", "private": e.Private} {
		if given {
			wrong(field, "is for a webhook")
		}
	}
	for i, name := range e.Hooks {
		if !slices.ContainsFunc(f.Hooks, func(h hooks.Hook) bool { return h.Name == name && h.Kind == hooks.Slack }) {
			wrong(fmt.Sprintf("hooks[%d]", i), "%.70q is no hook of the kind slack in the file of hooks", name)
		}
	}
	people := 0
	if err := f.Tokens.CheckAccounts(e.Name, func(_, id string) error { people++; return slack.CheckAccount(id) }); err != nil {
		wrong("name", "has an account in the file of tokens that cannot be: %v", err)
	}
	if people > 0 && len(e.Hooks) == 0 && e.AppTokenFile == "" {
		wrong("hooks", "is empty, so that the people with accounts at %s cannot decide anything: Slack tells what they press by hooks, "+
			"or by Socket Mode with app_token_file", e.Name)
	}
	// The files of tokens are read here once, so that a path that is wrong is
	// told now and not at the first message.
	client, err := slack.New(slack.Config{
		URL: e.URL, Team: e.Team, Alone: f.alone, TokenFile: f.path(e.TokenFile), AppTokenFile: f.path(e.AppTokenFile),
	})
	if err != nil { // it names the setting
		field, why, _ := strings.Cut(err.Error(), ": ")
		wrong(field, "%s", why)
		return nil
	}
	// Nothing of a file is used in which anything is wrong.
	if len(f.errs) > 0 {
		return nil
	}
	cfg.Chat = client
	loops := []Loop{{e.Name, chat.New(*cfg).Run}}
	// Deliveries of the connection are stored under the name of the chat,
	// beside the claims: both are our own.
	if e.AppTokenFile != "" {
		s := &slack.Socket{Client: client, Name: e.Name, Store: cfg.Deliveries.Store, Log: f.Log}
		loops = append(loops, Loop{e.Name, s.Run})
	}
	return loops
}

// webhook checks the settings of a webhook, and returns its watcher.
func (f *file) webhook(e *entry, cfg *chat.Config, secrets *redact.Redactor, wrong fails) []Loop {
	for field, given := range map[string]bool{
		"team": e.Team != "", "url": e.URL != "", "token_file": e.TokenFile != "", "app_token_file": e.AppTokenFile != "", "hooks": len(e.Hooks) > 0,
	} {
		if given {
			wrong(field, "is for Slack: a webhook is only notified, and cannot answer")
		}
	}
	if err := f.Tokens.CheckAccounts(e.Name, func(_, _ string) error { return errors.New("a webhook is told, and does not answer") }); err != nil {
		wrong("name", "has an account in the file of tokens that cannot be: %v", err)
	}
	for i := range e.Channels {
		if c := &e.Channels[i]; c.Channel != "" || c.Submit != "" {
			wrong(fmt.Sprintf("channels[%d]", i), "has channel or submit, which a webhook has not")
		}
	}
	secret := ""
	if e.SecretFile != "" {
		secret = f.path(e.SecretFile)
	}
	client, err := webhook.New(webhook.Config{URLFile: f.path(e.URLFile), SecretFile: secret, Private: e.Private, Secrets: secrets, Now: time.Now})
	if err != nil {
		field, why, _ := strings.Cut(err.Error(), ": ")
		wrong(field, "%s", why)
	}
	if len(f.errs) > 0 {
		return nil
	}
	cfg.Chat = client
	return []Loop{{e.Name, chat.New(*cfg).Run}}
}
