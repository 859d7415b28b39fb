package service

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// What [Parse] returns instead of a configuration when a person only asked.
var (
	// ErrHelp is returned for --help.
	ErrHelp = flag.ErrHelp
	// ErrVersion is returned for --version.
	ErrVersion = errors.New("version requested")
)

// Parse reads the configuration of a service: flags first, then the environment,
// then defaults; an empty variable is as good as none. An error names the flag and
// the variable. It returns [ErrHelp] or [ErrVersion] when asked for these.
func Parse(service string, args []string, getenv func(string) string) (*Config, error) {
	table := settings()
	given := map[string][]string{}
	fs := flag.NewFlagSet(service, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	version := fs.Bool("version", false, "")
	for _, s := range table {
		fs.Func(s.flag, s.usage, func(v string) error {
			if !s.many {
				given[s.flag] = nil
			}
			given[s.flag] = append(given[s.flag], v)
			return nil
		})
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if *version {
		return nil, ErrVersion
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: every setting is a flag, see --help", fs.Arg(0))
	}
	c := &Config{}
	for _, s := range table {
		d := defaults{service: service, replica: c.Replica, getenv: getenv}
		for _, v := range s.values(given[s.flag], d) {
			if err := s.set(c, v); err != nil {
				return nil, fmt.Errorf("--%s (%s): %w", s.flag, s.env, err)
			}
		}
	}
	return c, c.check()
}

// values returns the texts that a setting has: of its flag, else of its variable,
// else its default. An empty flag is a value too: it overrides the variable.
func (s *setting) values(given []string, d defaults) []string {
	switch env := d.getenv(s.env); {
	case given != nil:
		if s.initial == nil && len(given) == 1 && given[0] == "" {
			return nil
		}
		return given
	case env != "" && s.many:
		return strings.FieldsFunc(env, func(r rune) bool { return r == ',' || r == '\n' })
	case env != "":
		return []string{env}
	case s.initial != nil:
		return []string{s.initial(d)}
	}
	return nil
}

// writeHelp prints every setting with its variable and default.
func writeHelp(w io.Writer, service string, getenv func(string) string) {
	d := defaults{service: service, getenv: getenv}
	d.replica = forge.ReplicaID(hostReplica(d))
	fmt.Fprintf(w, "Usage: %s [flags]\n\nFlags, and the variables that serve where a flag is not given:\n\n", service)
	for _, s := range settings() {
		def := ""
		if s.initial != nil {
			def = fmt.Sprintf(" (default %s)", s.initial(d))
		}
		fmt.Fprintf(w, "  --%s %s\n        %s%s\n        %s\n", s.flag, s.value, s.usage, def, s.env)
	}
	fmt.Fprint(w, "  --version\n        print the version and exit\n\n"+
		"SIGTERM or SIGINT ends the service in order, a second one at once.\n")
}
