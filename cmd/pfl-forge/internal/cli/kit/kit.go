// Package kit has the parts that every command of pfl-forge is made with: the streams and flags of
// the whole program, the reading of arguments, questions at a terminal, the few shapes in
// which text is printed, and the exit codes.
//
// A command gets an *App and nothing else. It prints data to App.Out and everything else
// to App.Err, with Say. It asks a person only when App.Terminal finds one; elsewhere what
// is missing is an error that names it. It ends with nil, with an Exit, or with an error
// that the root prints; Usage marks the errors that are mistakes in the command line.
//
// What a command talks to (the repository's own server, or an organisation's) is in
// package target.
package kit

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
)

// App is one call of the program: its streams, its environment, and the flags that every
// command has.
type App struct {
	Where

	// In is standard input.
	In io.Reader
	// Out is for data: what a script reads.
	Out io.Writer
	// Err is for everything else: messages, progress, questions.
	Err io.Writer
	// Getenv reads the environment; tests give their own.
	Getenv func(name string) string

	// Verbose logs to Err, everything from debug level on.
	Verbose bool
}

// Where says which project a command is about, and how to reach it. Its fields are the
// program's persistent flags, as they were typed and not yet checked.
type Where struct {
	// Dir is the repository's folder, or one in it.
	Dir string
	// Server is the URL of an organisation's NATS, or of its gateway; empty for the repository's
	// own server.
	Server string
	// Context is the name of a NATS context, instead of Server.
	Context string
	// TokenFile is a file with a token of NATS or of the gateway, and Creds one with NATS
	// credentials.
	TokenFile string
	Creds     string // file with NATS credentials
	NKey      string // file with the seed of an nkey
	// TLSCA has the authorities that the server's certificate is checked against, TLSCert
	// and TLSKey the certificate to show to it. All are files.
	TLSCA, TLSCert, TLSKey string
	// Person is the name of the account; empty for the one that git or the system
	// knows, or, with NKey, for "operator".
	Person string
	// Project is the id of the organisation's project; empty for the one of the
	// repository at Dir.
	Project string
	// TraceURL is the address of the organisation's traces, see ParseTraceURL. It is the person's
	// own setting: a link that others could set would lead whoever follows it where they want.
	TraceURL string

	// typed has the flags that were typed, each after a space.
	typed string
}

// Remote reports whether a command is about an organisation's pfl-forge, and not about
// the one that works in the repository itself.
func (w *Where) Remote() bool { return w.Server != "" || w.Context != "" }

// ByHTTP reports whether a command is about an organisation's pfl-forge that is
// asked through its gateway, and not over NATS.
func (w *Where) ByHTTP() bool {
	scheme, _, found := strings.Cut(w.Server, "://")
	return found && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http"))
}

// AddFlags adds to the root command the flags that every command has.
func (a *App) AddFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVarP(&a.Dir, "repo", "C", ".", "the `folder` of the repository")
	flags.StringVar(&a.Server, "server", "", "`URL` of an organisation's NATS server, or with https of its gateway, "+
		"instead of the repository's own; default: $FORGE_SERVER")
	flags.StringVar(&a.Context, "context", "", "`name` of a NATS context to connect with, instead of --server")
	flags.StringVar(&a.TokenFile, "token-file", "", "`file` that holds a token, with --server; for a gateway there is $PFL_FORGE_TOKEN, too")
	flags.StringVar(&a.Creds, "creds", "", "`file` with NATS credentials, with --server")
	flags.StringVar(&a.NKey, "nkey", "", "`file` with the seed of an nkey, with --server")
	flags.StringVar(&a.TLSCA, "tls-ca", "", "`file` with the authorities of the server's certificate, with --server; default: the system's")
	flags.StringVar(&a.TLSCert, "tls-cert", "", "`file` with the certificate to show to the server, with --tls-key")
	flags.StringVar(&a.TLSKey, "tls-key", "", "`file` with its key")
	flags.StringVar(&a.Person, "person", "", "`name` of your account, with --server; default: operator with --nkey, else the author that git knows")
	flags.StringVar(&a.Project, "project", "", "`id` of the project, with --server; default: the folder's name")
	flags.StringVar(&a.TraceURL, "trace-url", "", "`address` at which you read a trace, with {trace_id} for its id, with --server")
	flags.BoolVarP(&a.Verbose, "verbose", "v", false, "log to standard error")
	root.MarkFlagsMutuallyExclusive("server", "context")
	root.MarkFlagsMutuallyExclusive("token-file", "creds", "nkey")
}

// Log returns the logger of a command that has no log file: silent unless --verbose is
// given.
func (a *App) Log() *slog.Logger {
	if !a.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Say prints a line for a person to standard error: a hint, a warning, what comes next.
// It is never part of a command's data. Commands in it can be pasted.
func (a *App) Say(format string, args ...any) {
	fmt.Fprintln(a.Err, a.Pasted(fmt.Sprintf(format, args...)))
}
