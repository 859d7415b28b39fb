package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// About describes a CLI to a person: in error messages, and in pfl-forge doctor.
type About struct {
	// Backend is the back end's name in pfl-forge.yaml.
	Backend string
	// Command is the executable's name.
	Command string
	// Install is the command that installs it.
	Install string
	// Oldest is the oldest version that the back end is known to work with.
	Oldest string
	// Login lists the variables of which one must be set.
	Login []string
	// Key is the variable that holds the key of the model's API.
	Key string
	// Endpoint is the variable that holds the model's base URL.
	Endpoint string
}

// versionInText matches the version in whatever a CLI prints about itself.
var versionInText = pattern.New(`\b(\d+)\.(\d+)\.(\d+)\b`)

// Version returns the version that the program reports. If that is older than
// About.Oldest, it is returned beside a *agent.Failure. home is used as directory and
// HOME.
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

// versionNumbers returns the three numbers of a version; a missing one is 0.
func versionNumbers(version string) (out [3]int) {
	for i, s := range strings.SplitN(version, ".", 3) {
		out[i], _ = strconv.Atoi(s)
	}
	return out
}

// NetworkEnv returns the variables of the service's own environment that configure
// proxies and certificates, for programs that reach the network without the gateway.
func NetworkEnv() []string {
	return process.Inherit("HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
}
