package auth

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

const signHelp = `Print the header by which a system proves that a message is its own, as the nats command line
takes it. The message is on standard input, and is sent exactly as it is there.

The signature is for this subject, id, content type and content, and good for ten minutes: a message
that was stored in time may then wait for a runner as long as it takes.`

const signExample = `  nats req forge.intent.shop.from.scanner.submit "$(cat intent.json)" \
    --header "$(printf %s "$(cat intent.json)" | pfl-forge auth sign --nkey scanner.nk --account scanner --subject forge.intent.shop.from.scanner.submit)"`

// signOptions are the flags of auth sign.
type signOptions struct{ account, subject, id, contentType string }

// maxSigned bounds a message, in bytes: what a server takes with our settings.
const maxSigned = 8 << 20

// signCommand returns the command auth sign. It needs no connection: --nkey is
// read, and nothing is sent. What is printed can be pasted behind --header of nats.
func signCommand(a *kit.App) *cobra.Command {
	var o signOptions
	cmd := &cobra.Command{
		Use:     "sign",
		Short:   "print the header that proves whose message it is",
		Long:    signHelp,
		Example: signExample,
		Args:    kit.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.check(a); err != nil {
				return kit.Usage(err)
			}
			return printSigned(a, &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.account, "account", "", "`name` of the account that --nkey is of")
	flags.StringVar(&o.subject, "subject", "", "`subject` that the message is sent to")
	flags.StringVar(&o.id, "id", "", "value of the header Nats-Msg-Id, if it is sent with one")
	flags.StringVar(&o.contentType, "content-type", "", "value of the header Content-Type, if it is sent with one")
	for _, name := range []string{"account", "subject", "id", "content-type"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

// check refuses flags that are missing or malformed.
func (o *signOptions) check(a *kit.App) error {
	switch {
	case a.NKey == "":
		return kit.Missing("--nkey, the file with the seed of the account")
	case o.account == "":
		return kit.Missing("--account, the name of the account that --nkey is of")
	case o.subject == "" || strings.ContainsAny(o.subject, " \t\r\n*>"):
		return errors.New("--subject: give the subject that the message is sent to, without wildcards")
	}
	if _, err := access.NewAccount(access.Submitter, o.account); err != nil {
		return fmt.Errorf("--account: %w", err)
	}
	return nil
}

// printSigned prints the header for the message on standard input. The clock of
// this machine is in the signature, which counts for ten minutes. The message
// is not printed. One that is too large is refused here, before a server would.
func printSigned(a *kit.App, o *signOptions) error {
	key, err := bus.SigningKey(a.NKey, o.account)()
	if err != nil {
		return fmt.Errorf("--nkey: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(a.In, maxSigned+1))
	if err != nil {
		return err
	}
	if len(data) > maxSigned {
		return fmt.Errorf("the message on standard input has more than %d bytes", maxSigned)
	}
	p, err := signed.Sign(key, &signed.Message{Subject: o.subject, ID: o.id, ContentType: o.contentType, Payload: data}, time.Now())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%s: %s\n", signed.Header, p.String())
	return err
}
