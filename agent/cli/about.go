package cli

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// About is what a person has to know of a CLI.
type About struct {
	Backend  string   // the back end's name
	Command  string   // the executable's name
	Install  string   // the command that installs it
	Oldest   string   // version that works
	Login    []string // variables of which one must be set
	Key      string   // the variable that holds the key of the model's API
	Endpoint string   // the variable that holds the model's base URL
}

var versionInText = regexp.MustCompile(`\b(\d+)\.(\d+)\.(\d+)\b`)

// Version asks the program for its version. One that is too old is a failure that says
// so, and is returned beside it. home is the directory to ask it in, and its HOME.
func (p *Program) Version(ctx context.Context, home string) (string, error) {
	a := &p.About
	found, err := p.lookPath()
	if err != nil {
		return "", err
	}
	report, err := process.Run(ctx, process.Command{
		Path: found, Args: []string{"--version"}, Dir: home, Env: process.Environment(home), Owner: p.Options.Owner,
		Limits: process.Limits{Wall: 20 * time.Second, OutputBytes: 1 << 16},
	})
	if err != nil {
		return "", agent.AsFailure(err)
	}
	m := versionInText.FindString(string(report.Output))
	if report.ExitCode != 0 || m == "" {
		return "", agent.Fail(forge.FailCrashed, "%s --version ended with status %d: %s", a.Command, report.ExitCode, report.Output)
	}
	if olderVersion(m, a.Oldest) {
		return m, agent.Fail(forge.FailCLITooOld, "%s %s is older than %s; run %s", a.Command, m, a.Oldest, a.Install)
	}
	return m, nil
}

// olderVersion reports whether version a is before b; both are three numbers.
func olderVersion(a, b string) bool {
	x, y := versionNumbers(a), versionNumbers(b)
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

func versionNumbers(version string) (out [3]int) {
	for i, s := range strings.SplitN(version, ".", 3) {
		out[i], _ = strconv.Atoi(s)
	}
	return out
}

// NetworkEnv returns the variables of the service's own environment by which a program
// reaches the network, where no gateway does that for it.
func NetworkEnv() []string {
	return process.Inherit("HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
}
