package auditlog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/services/runner/audit"
)

// report is the outcome of a verification, as programs read it.
type report struct {
	// Whole says that the journals prove what they hold.
	Whole bool `json:"whole" yaml:"whole"`
	// Journals and Records count what was read.
	Journals int `json:"journals" yaml:"journals"`
	Records  int `json:"records"  yaml:"records"`
	// Signatures counts events of people, systems and workers; nil without the keys to trust.
	Signatures *signatures `json:"signatures,omitempty" yaml:"signatures,omitempty"`
	// Findings are by journal and sequence.
	Findings []finding `json:"findings" yaml:"findings"`
}

// finding is a chain.Finding, as programs read it.
type finding struct {
	Kind     chain.Kind `json:"kind"     yaml:"kind"`
	Journal  string     `json:"journal"  yaml:"journal"`
	Sequence uint64     `json:"sequence" yaml:"sequence"`
	Detail   string     `json:"detail"   yaml:"detail"`
	Hint     string     `json:"hint"     yaml:"hint"`
}

// verify checks the journals of a scope, and prints what is wrong with them.
//
// The files of flags are read first. A checkpoint is written only if everything
// is whole, as the next verification trusts it. The report is printed in any
// case; the exit code is kit.ExitError if it is not whole.
func verify(ctx context.Context, a *kit.App, s scope, f *verifyFlags) error {
	var before *chain.Checkpoint
	if f.since != "" {
		var err error
		if before, err = readCheckpoint(f.since); err != nil {
			return err
		}
	}
	sigs, err := f.signatures()
	if err != nil {
		return err
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	key := s.key(t)
	began := time.Now()
	audit, err := read(ctx, t, key, sigs)
	if err != nil {
		return err
	}
	if before != nil {
		audit.Compare(before)
	}
	rep := reportOf(audit, sigs)
	if key.Intent != "" && len(rep.Findings) == 0 && !has(audit, key) {
		return fmt.Errorf("project %s has no intent %s", key.Project, key.Intent)
	}
	if f.checkpoint != "" && rep.Whole && rep.Journals > 0 {
		if err := writeCheckpoint(f.checkpoint, chain.NewCheckpoint(audit, began)); err != nil {
			return err
		}
	}
	names := kit.Names(rep.Findings, func(f *finding) string { return fmt.Sprintf("%s\t%d", kit.Safe(f.Journal), f.Sequence) })
	if err := a.Print(f.format, rep, names, func() error { return printReport(a, &rep) }); err != nil {
		return err
	}
	switch {
	case f.checkpoint == "":
	case rep.Journals == 0:
		a.Say("no checkpoint was written: there is no journal yet")
	case !rep.Whole:
		a.Say("no checkpoint was written: the journals are not whole")
	}
	if !rep.Whole {
		return kit.ExitError
	}
	return nil
}

// read returns an Audit that has read the journals of a scope, and has their signatures examined,
// unless sigs is nil. Each message is read once for both. It needs the right to read, and no more.
func read(ctx context.Context, t *target.Target, scope forge.Key, sigs *signatures) (*chain.Audit, error) {
	chains := audit.Chains(scope)
	if t.Bus == nil { // nothing was ever submitted, or all of it is gone
		return chains, nil
	}
	err := t.Bus.Journal.Each(ctx, scope, func(e *journal.Entry) error {
		chains.Add(&e.Link)
		if sigs != nil {
			sigs.add(e)
		}
		return nil
	})
	return chains, err
}

// has reports whether an Audit has read a machine's journal.
// It is false for an intent whose journal is gone, which a finding may name as missing.
func has(audit *chain.Audit, key forge.Key) bool {
	subject, err := subjects.Journal(key)
	return err == nil && slices.ContainsFunc(audit.Heads(), func(r chain.Ref) bool { return r.Subject == subject })
}

// reportOf returns the findings of an Audit, and those about signatures if they
// were examined, as programs read them. Foreign messages, and events without a
// signature or in another form, are findings that break nothing.
func reportOf(audit *chain.Audit, sigs *signatures) report {
	rep := report{Whole: true, Findings: []finding{}}
	rep.Journals, rep.Records = audit.Count()
	for _, f := range audit.Findings() {
		rep.Whole = rep.Whole && !f.Breaks()
		rep.Findings = append(rep.Findings, finding{f.Kind, f.Journal, f.Seq, f.Detail, f.Hint})
	}
	if sigs != nil {
		rep.Whole = rep.Whole && sigs.Unproven == 0
		rep.Signatures, rep.Findings = sigs, append(rep.Findings, sigs.found...)
	}
	return rep
}

// printReport prints a report for a person: what is wrong, and how much was read.
// The last line has the outcome, so that it is seen under however many findings.
func printReport(a *kit.App, rep *report) error {
	style := a.Style(a.Out)
	for i := range rep.Findings {
		f := &rep.Findings[i]
		mark := style.Bad(fmt.Sprintf("%-7s", f.Kind))
		if f.Kind == chain.Foreign || f.Kind == unsigned || f.Kind == reworded {
			mark = style.Attention(fmt.Sprintf("%-7s", f.Kind))
		}
		fmt.Fprintf(a.Out, "%s  %s message %d: %s\n%s\n", mark, kit.Safe(f.Journal), f.Sequence, kit.Safe(f.Detail), kit.Indent("> "+f.Hint, "         "))
	}
	what := "whole"
	if !rep.Whole {
		what = "not whole"
	}
	if s := rep.Signatures; s != nil {
		fmt.Fprintf(a.Out, "%d events of people, systems and workers are signed, %d in another form; %d are unsigned, %d not proven\n",
			s.Signed, s.Reworded, s.Unsigned, s.Unproven)
	}
	_, err := fmt.Fprintf(a.Out, "%s with %s: %s\n", render.Count(rep.Journals, "journal"), render.Count(rep.Records, "record"), what)
	return err
}
