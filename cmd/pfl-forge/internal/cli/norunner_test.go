package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// Where no runner has ever been, every command says so at once; none waits.
func TestNoRunner(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t)
	for _, args := range [][]string{
		{"run"}, {"create", "--title", "One"}, {"status"}, {"approve", "one"}, {"clean"}, {"doctor"},
	} {
		var out, errs bytes.Buffer
		args = append([]string{"--server", server.URL(), "--project", "shop"}, args...)
		code := Main(args, strings.NewReader(""), &out, &errs, func(string) string { return "" })
		if said := out.String() + errs.String(); code != int(kit.ExitError) || !strings.Contains(said, "no runner has been here yet: start forge-runner") {
			t.Errorf("%v: exit code %d, said %q", args[4:], code, said)
		}
	}
}
