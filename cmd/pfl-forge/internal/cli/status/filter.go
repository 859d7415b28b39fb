package status

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/document"
)

// filter selects the intents to list, by the flags.
type filter struct {
	document.Filter
	since, priority string
}

// filterFlags adds the flags of the filter to the command.
func (f *filter) filterFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	kit.ListVar(set, &f.Status, "status", nil, "only intents with one of these `statuses`: "+strings.Join(document.Statuses, ", "))
	kit.ListVar(set, &f.Waiting, "waiting", nil, "only intents that wait for one of these `decisions` of a person: "+strings.Join(document.Waits, ", ")+
		"; dirty: their uncommitted files are in the way, base: the base branch fails by itself")
	kit.ListVar(set, &f.Type, "type", nil, "only intents of one of these `types`, such as fix")
	kit.ListVar(set, &f.Labels, "label", nil, "only intents with all of these `labels`")
	set.StringVar(&f.Requester, "requester", "", "only intents that this `name`, a person or a system, asked for")
	set.StringVar(&f.priority, "priority", "", "only intents whose priority is this `number` or more")
	set.StringVar(&f.since, "since", "", "only intents on which something was decided after a `time` such as 24h or 2026-03-01")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(document.Statuses, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("waiting", cobra.FixedCompletions(document.Waits, cobra.ShellCompDirectiveNoFileComp))
}

// check returns the first mistake in the flags, and completes the filter.
// It is called before anything is read. The error names the flag.
func (f *flags) check() (err error) {
	if f.page < 1 {
		return errors.New("--page: pages are counted from 1")
	}
	if f.Since, err = kit.ParseSince(f.since, time.Now()); err != nil {
		return fmt.Errorf("--since: %w", err)
	}
	if f.priority != "" {
		n, err := strconv.Atoi(f.priority)
		if err != nil {
			return fmt.Errorf("--priority: %.40q is not a whole number", f.priority)
		}
		f.Priority = &n
	}
	if wrong := f.Check(); len(wrong) > 0 {
		return fmt.Errorf("--%s: %s", wrong[0].Field, wrong[0].Reason)
	}
	if f.watch && !f.IsZero() {
		return errors.New("--watch shows all that happens: it goes with none of --status, --waiting, --type, --label, --requester, --priority and --since")
	}
	return nil
}
