package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// What a command does whose server is a gateway is in this table: it works, it has nothing to do
// with a server, or it is refused with what to do instead. A command that is not in it is refused.

// works says that a command works by HTTP, and local that it has nothing to do with a server.
const (
	works = ""
	local = "-"
)

const (
	inRepository = "it works in a repository: leave --server out"
	overNATS     = "it takes an account of NATS: give --server tls://... with --nkey"
	ofOperators  = "it is for the operators of the services, who give --server tls://... with --nkey"
	ofProject    = "the whole project is paused, resumed and reflected on with an account of NATS: give --server tls://... with --nkey"
)

// byHTTP has the commands by their paths, without the name of the program. What
// is below a command that is refused is refused, too.
//
// A command works if all that it reads is in documents of the API, and all that it asks
// for is a wish about intents. What works on a repository, or on the streams of NATS
// themselves, cannot; and what is for the operators of an installation is not for whoever
// has a token. To let a command work that is refused, have it read by the methods of
// target.Target, change its line here, and its row in docs/guide-api.md; a test compares
// the two. Another one compares the outputs by HTTP and over NATS: add the command there.
var byHTTP = map[string]string{
	"status": works, "watch": works, "inbox": works, "clarifications": works, "show": works, "diff": works, "logs": works, "costs": works,
	"history": works, "replay": works, "settings": works, "health": works, "queue": works, "schedules": works,
	"create": works, "approve": works, "request-changes": works, "reject": works, "answer": works, "retry": works, "pause": works, "resume": works,
	"cancel": works, "goal": works, "goal status": works, "goal list": works, "goal cancel": works, "goal resume": works,
	"login": works, "logout": works, "whoami": works,

	"init": local, "demo": local, "version": local, "trust": local, "verify-commit": local, "auth": local, "gateway": local, "intake": local,
	"help": local, "completion": local,

	"run":              inRepository + "; for what an organisation's services do there is pfl-forge status --watch",
	"goal run":         overNATS + "; pfl-forge create --criterion asks for a goal with the usual bounds",
	"audit":            overNATS + "; pfl-forge create --type audit asks for an audit, and pfl-forge show has its report",
	"schedules apply":  overNATS,
	"schedules pause":  overNATS,
	"schedules resume": overNATS,
	"schedules run":    overNATS,
	"reflect":          ofProject,
	"operator":         overNATS,
	"knowledge":        overNATS,
	"audit-log":        overNATS + "; auditors read /api/v1/projects/<project>/audit, and the console",
	"rejudge":          overNATS,
	"checks":           "the flakiest of them are in pfl-forge health -o json; for all " + overNATS,
	"console":          "the gateway has a console of its own, at /console/ of its address",
	"backup":           ofOperators, "restore": ofOperators, "recover": ofOperators, "clean": ofOperators, "doctor": ofOperators,
}

// checkHTTP refuses a command that does not work by HTTP, if its server is a gateway.
// It is asked before the command does anything. A command that has nothing to do with a
// server is let through, because FORGE_SERVER may be set for all commands of a shell.
// The completion of a shell is let through as well: it names ids, which can be read.
func checkHTTP(a *kit.App, cmd *cobra.Command) error {
	if !a.ByHTTP() {
		return nil
	}
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	if path == "" || strings.HasPrefix(path, "__complete") {
		return nil
	}
	words := strings.Fields(path)
	for n := range words {
		switch said, known := byHTTP[strings.Join(words[:n+1], " ")]; {
		case !known:
			return fmt.Errorf("%s does not work by HTTP: %s", path, overNATS)
		case said == local:
			return nil
		case said != works:
			return fmt.Errorf("%s does not work by HTTP: %s", path, said)
		}
	}
	return nil
}
