package schedules

import (
	"strings"
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	for _, test := range []struct{ expression, zone, after, want string }{
		{"30 2 * * *", "", "2026-11-29T02:29:59Z", "2026-11-29T02:30:00Z 2026-11-30T02:30:00Z"},
		{"30 2 * * *", "", "2026-11-29T02:30:00Z", "2026-11-30T02:30:00Z"},
		{"30  2 * * *", "", "2026-11-29T02:30:00.5Z", "2026-11-30T02:30:00Z"},
		{"@daily", "Asia/Tokyo", "2026-11-29T12:00:00Z", "2026-11-29T15:00:00Z 2026-11-30T15:00:00Z"},
		{"0 9 * * MON-FRI", "Europe/Berlin", "2026-11-27T12:00:00Z", "2026-11-30T08:00:00Z 2026-12-01T08:00:00Z"},
		{"0 0 29 2 *", "", "2026-11-29T12:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
		{"0 0 * * 7", "", "2026-11-29T12:00:00Z", "2026-12-06T00:00:00Z"},
		// The clock is put forward from 2:00 to 3:00: a nightly schedule comes
		// on that day, too, and one of each half hour not twice.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z 2026-03-30T00:30:00Z"},
		{"*/30 * * * *", "Europe/Berlin", "2026-03-29T00:29:00Z", "2026-03-29T00:30:00Z 2026-03-29T01:00:00Z 2026-03-29T01:30:00Z 2026-03-29T02:00:00Z"},
		// What is leapt over comes later even if it is asked about only after the leap.
		{"*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-29T01:20:00Z 2026-03-29T01:40:00Z 2026-03-30T00:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:10:00Z", "2026-03-29T01:30:00Z 2026-03-30T00:30:00Z"},
		{"20,35 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:35:00Z 2026-10-03T15:50:00Z 2026-10-04T15:20:00Z"},
		{"0 6,18 * * *", "Pacific/Apia", "2011-12-30T08:00:00Z", "2011-12-30T16:00:00Z 2011-12-31T04:00:00Z 2011-12-31T16:00:00Z"},
		// It is put back from 3:00 to 2:00: a nightly schedule comes once.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:30:00Z 2026-03-09T06:30:00Z"},
		{"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z"},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:29:00Z", "2026-10-25T00:30:00Z 2026-10-25T02:00:00Z"},                   // the hour comes twice
		{"0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-29T22:00:00Z 2011-12-30T22:00:00Z 2011-12-31T22:00:00Z"}, // without 30 December
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:45:00Z 2026-10-04T15:15:00Z"},               // a leap of half an hour
	} {
		times, err := Parse(test.expression, test.zone)
		if err != nil {
			t.Errorf("%q: %v", test.expression, err)
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, test.after)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range strings.FieldsSeq(test.want) {
			at = times.Next(at)
			got = append(got, at.Format(time.RFC3339))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%q in %q after %s: %s, want %s", test.expression, test.zone, test.after, got, test.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ expression, zone, want string }{
		{"", "", "five fields"},
		{"* * * *", "", "five fields"},
		{"* * * * * *", "", "five fields"},
		{"60 * * * *", "", "60"},
		{"*/0 * * * *", "", "step"},
		{"a b c d e", "", "not understood"},
		{"0 0 31 2 *", "", "never comes"},
		{"0 0 30 2 *", "Europe/Berlin", "never comes"},
		{"@every 1s", "", "@hourly"},
		{"@reboot", "", "@hourly"},
		{"TZ=Asia/Tokyo 0 0 * * *", "", "five fields"},
		{strings.Repeat("1,", 200) + "1 * * * *", "", "bytes"},
		{"@daily", "Mars/Olympus", "time zone"},
		{"@daily", "Local", "time zone"},
		{"@daily", "/etc/passwd", "time zone"},
		{"@daily", "../../etc/passwd", "time zone"},
		{"@daily", "Europe/Berlin\x00", "time zone"},
	} {
		if _, err := Parse(test.expression, test.zone); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q in %q: %v, want %q", test.expression, test.zone, err, test.want)
		}
	}
}

// FuzzParse has times follow on each other, whatever the expression and the zone are.
func FuzzParse(f *testing.F) {
	f.Add("30 2 * * *", "Europe/Berlin", int64(1_774_700_000))
	f.Add("*/7 2-4 L * MON#2", "Australia/Lord_Howe", int64(1_790_000_000))
	f.Fuzz(func(t *testing.T, expression, zone string, seconds int64) {
		times, err := Parse(expression, zone)
		if err != nil {
			return
		}
		at := time.Unix(seconds%4_000_000_000, 0)
		for range 20 {
			next := times.Next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q in %q: %s does not come after %s", expression, zone, next, at)
			}
			at = next
		}
	})
}
