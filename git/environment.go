package git

import (
	"os"
	"strings"
)

// hermetic configuration: no hook, no helper, no garbage collection, no prompt, and
// what we name in an event is on the disk before the command returns. Command-line
// configuration wins over a repository's own.
var hermetic = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.fsync=committed,reference",
	"core.fsyncMethod=batch",
	"core.protectHFS=true",
	"core.protectNTFS=true",
	"core.quotePath=false",
	"gc.auto=0",
	"maintenance.auto=false",
	"safe.bareRepository=explicit",
	"submodule.recurse=false",
	"commit.gpgSign=false",
	"push.gpgSign=false",
	"advice.detachedHead=false",
}

// private keeps everybody's own ignore and attribute files out of our commands.
var private = []string{
	"core.excludesFile=/dev/null",
	"core.attributesFile=/dev/null",
}

// arguments puts the configuration in front of the command. No transport is allowed
// unless the call asks for it.
func (c Command) arguments(args []string) []string {
	full := make([]string, 0, 2*(len(hermetic)+len(private)+len(c.Config)+1)+len(args)+1)
	add := func(list []string) {
		for _, kv := range list {
			full = append(full, "-c", kv)
		}
	}
	add(hermetic)
	if !c.Personal {
		add(private)
	}
	full = append(full, "-c", "protocol.allow=never")
	add(c.Config)
	full = append(full, "--no-replace-objects", "--literal-pathspecs")
	return append(full, args...)
}

// environment is built from nothing: of the parent's variables only those that find
// programs, homes and credentials pass.
func (c Command) environment() []string {
	env := []string{
		"LC_ALL=C", "TZ=UTC", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=false", "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0",
	}
	if !c.Personal {
		env = append(env, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1")
	}
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "XDG_CONFIG_HOME"} {
		if v, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+v)
		}
	}
	if c.GitDir != "" {
		env = append(env, "GIT_DIR="+c.GitDir)
	}
	return append(env, c.Env...)
}

// Identity is the name and address of an author or committer.
type Identity struct {
	Name  string
	Email string
}

// OrDefault returns the identity without characters that git does not allow in one;
// pfl-forge when the name or address is missing.
func (id Identity) OrDefault() Identity {
	if id.Name == "" || id.Email == "" {
		return Identity{Name: "pfl-forge", Email: "pfl-forge@localhost"}
	}
	return Identity{Name: identityText(id.Name), Email: identityText(id.Email)}
}

// identityText drops the characters that would break an identity line or a configuration value.
func identityText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune("<>\"\\", r) {
			return -1
		}
		return r
	}, Clip(s))
	if s = strings.TrimSpace(s); s == "" {
		return "unknown"
	}
	return s
}
