package runner

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/document/whole"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

// Whole returns everything that is known of an intent, but for its records, and these as a reader is told them. Both are made of
// its whole journal. Error: bus.ErrNotFound for an intent without a journal.
func Whole(ctx context.Context, b *bus.Bus, key forge.Key) (whole.Intent, []forge.Record, error) {
	records, head, err := b.Journal.Load(ctx, key)
	if err != nil {
		return whole.Intent{}, nil, err
	}
	if len(records) == 0 {
		return whole.Intent{}, nil, bus.ErrNotFound
	}
	d := whole.Intent{Attempts: report.Ended(key, records)}
	d.View, d.Work = report.Of(key, records)
	d.View.Seq = head.Seq
	if head.Broken != nil {
		d.Broken = head.Broken.Error()
	}
	return d, report.Abridge(records), nil
}
