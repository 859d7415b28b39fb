// Package auditlog is the commands about the journals as evidence: audit-log verify checks
// their chains of hashes, and audit-log export prints what they tell of people and attempts.
//
//	command.go   the commands and their flags
//	verify.go    reads the journals into a chain.Audit and prints what it finds
//	checkpoint.go   the files with the ends of journals
//	export.go    the events of journals in the order of their decisions, one a line: services/runner/audit
//	             says who asked, approved, ran and merged
//
// Both need no more than the right to read, and read through package journal alone.
package auditlog

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/proof"
)

const verifyHelp = `Check that nothing in the journals was changed, removed, added or moved since it was
written: of the project, with --all of every project, or of one intent and its project.
Each record carries the hash of the one before it, and what intents and their project tell one
another names the records by which it was told.

That cannot show that the end of everything was cut off, or that all of it was written anew. A
checkpoint can: --checkpoint writes one, and --since compares the journals with an earlier one.
Keep it where nobody who runs pfl-forge or its NATS may write.

With --trusted-keys, the signatures of people, systems and workers are examined, too: each is kept
in the journal with what it signed, so that this asks no runner and trusts none. It names the events
that are not signed.

The exit code is 1 if the journals do not prove what they hold.`

const exportHelp = `Print what the journals say of people, systems and attempts: who asked, approved which
plan, rejected or answered, what ran where by which agent, and what was merged. Each event is a
CloudEvent in a line of JSON, in the order of the decisions, with the sequence and the hash of its record.

The exit code is 1 if the journals are not whole, as audit-log verify finds; the events are printed all the same.`

// Command returns the command audit-log with those below it. Neither of them asks
// a runner: an auditor need not trust the one who wrote the journals (ADR-0047).
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit-log",
		Short: "check that nothing in the journals was changed, or export who did what",
		Args:  kit.KnownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(verifyCommand(a), exportCommand(a))
	return cmd
}

// scope says which journals are read.
type scope struct {
	// all says that those of every project are.
	all bool
	// intent is the only one; empty for all intents.
	intent forge.IntentID
}

// newScope returns the scope that an argument and the flag --all name.
// An error is a mistake in the command line.
func newScope(args []string, all bool) (scope, error) {
	s := scope{all: all}
	if len(args) == 0 {
		return s, nil
	}
	if all {
		return s, kit.Usage(errors.New("--all is for every project; omit the id"))
	}
	ids, err := kit.IntentIDs(args)
	if err == nil {
		s.intent = ids[0]
	}
	return s, err
}

// key returns the scope as the journals know it. The empty key stands for every project. Of
// an intent the journal of its project is read as well, because its records name that one's.
func (s scope) key(t *target.Target) forge.Key {
	if s.all {
		return forge.Key{}
	}
	return t.Key(s.intent)
}

// verifyFlags are the flags of audit-log verify.
// since, checkpoint and keys are names of files; each is empty where that is not asked for.
type verifyFlags struct {
	all               bool
	since, checkpoint string
	keys              string
	format            render.Format
}

// signatures returns an examination of signatures by the keys to trust; nil without them.
// The file is read before the journals are, so that a wrong path is told at once.
func (f *verifyFlags) signatures() (*signatures, error) {
	if f.keys == "" {
		return nil, nil //nolint:nilnil // signatures are not examined
	}
	list, err := proof.ReadSigners(f.keys)
	if err != nil {
		return nil, fmt.Errorf("--trusted-keys: %w", err)
	}
	return &signatures{keys: signed.NewKeys(list)}, nil
}

// verifyCommand returns the command audit-log verify.
// A checkpoint is of all journals in the scope, so one of a single intent is refused.
func verifyCommand(a *kit.App) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [<intent>]",
		Short: "check that nothing in the journals was changed",
		Long:  verifyHelp,
		Example: "  pfl-forge audit-log verify\n  pfl-forge audit-log verify --all --since monday.json --checkpoint tuesday.json\n" +
			"  pfl-forge audit-log verify reset-link -o json",
		Args:              kit.Between(0, 1, ""),
		ValidArgsFunction: complete.Intents(a, complete.AnyIntent, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := newScope(args, f.all)
			if err != nil {
				return err
			}
			if s.intent != "" && f.checkpoint != "" {
				return kit.Usage(errors.New("--checkpoint is of all journals; omit the id"))
			}
			return verify(cmd.Context(), a, s, &f)
		},
	}
	set := cmd.Flags()
	set.BoolVar(&f.all, "all", false, "the journals of every project")
	set.StringVar(&f.since, "since", "", "compare with the checkpoint in a `file`")
	set.StringVar(&f.checkpoint, "checkpoint", "", "write a checkpoint to a `file`, unless something is wrong")
	set.StringVar(&f.keys, "trusted-keys", "", "examine signatures by the keys in a `file`, as auth init writes it")
	_ = cmd.MarkFlagFilename("trusted-keys")
	kit.OutputFlag(cmd, &f.format)
	return cmd
}

// exportFlags are the flags of audit-log export.
// The times are as they were typed: since is included, until is not, and an empty one is no bound.
type exportFlags struct {
	all          bool
	since, until string
}

// exportCommand returns the command audit-log export.
// It has no -o: the form is CloudEvents, a line each.
func exportCommand(a *kit.App) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:               "export [<intent>]",
		Short:             "print who asked, approved, ran and merged what, as CloudEvents",
		Long:              exportHelp,
		Example:           "  pfl-forge audit-log export > audit.jsonl\n  pfl-forge audit-log export reset-link --since 2026-03-01",
		Args:              kit.Between(0, 1, ""),
		ValidArgsFunction: complete.Intents(a, complete.AnyIntent, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := newScope(args, f.all)
			if err != nil {
				return err
			}
			return export(cmd.Context(), a, s, &f)
		},
	}
	set := cmd.Flags()
	set.BoolVar(&f.all, "all", false, "the journals of every project")
	set.StringVar(&f.since, "since", "", "only what was decided after a `time` such as 24h or 2026-03-01")
	set.StringVar(&f.until, "until", "", "only what was decided before a `time`")
	return cmd
}
