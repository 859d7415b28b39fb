// Package schedules says when a schedule is due, and what is wrong with one. It
// is pure: it knows no clock but the one it is asked about.
//
// Expressions are those of crontab(5): five fields, or a word such as @daily.
// They are parsed by package gronx. Where both fields of days are given, a day
// has to fit one of the two, as in crontab.
//
// Times are those of a wall clock in a zone. Each of them comes once: of an hour that
// the clock shows twice, when it is put back, the second is left out, and a time that
// the clock leaps over, when it is put forward, comes as much later as it leaps.
package schedules

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images have no zones of their own, and all runners have to agree

	"github.com/adhocore/gronx"
)

// maxExpression bounds an expression, in bytes.
const maxExpression = 200

// The words for common expressions.
var words = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
}

// Times are those at which a schedule is due. Make one by [Parse].
type Times struct {
	expression string
	zone       *time.Location
}

// Parse returns the times of an expression in a zone of the IANA database;
// without one they are those of UTC. An expression that never comes is refused.
func Parse(expression, zone string) (*Times, error) {
	t := &Times{expression: strings.Join(strings.Fields(expression), " "), zone: time.UTC}
	if full := words[t.expression]; full != "" {
		t.expression = full
	}
	switch {
	case len(expression) > maxExpression:
		return nil, fmt.Errorf("has %d bytes; at most %d are allowed", len(expression), maxExpression)
	case strings.HasPrefix(t.expression, "@"):
		return nil, errors.New("is not one of @hourly, @daily, @weekly, @monthly and @yearly")
	case len(strings.Fields(t.expression)) != 5:
		return nil, errors.New(`needs five fields, for minute, hour, day of the month, month and day of the week, such as "30 2 * * 1-5"`)
	case !gronx.IsValid(t.expression):
		_, err := gronx.NextTickAfter(t.expression, time.Unix(0, 0).UTC(), false)
		return nil, fmt.Errorf("is not understood: %w", cmp.Or(err, errField))
	}
	if zone != "" {
		var err error
		if t.zone, err = location(zone); err != nil {
			return nil, err
		}
	}
	if t.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("never comes")
	}
	return t, nil
}

// errField stands for what gronx refuses without saying why.
var errField = errors.New("a field is wrong")

// ZoneError says that there is no zone of a name.
type ZoneError string

func (e ZoneError) Error() string {
	return fmt.Sprintf("%q is no time zone; write one such as Europe/Berlin, or leave it out for UTC", string(e))
}

// location returns a zone by its name. A path, which leads out of the database,
// is none, and neither is that of the machine: runners are in different ones.
func location(name string) (*time.Location, error) {
	if name == "Local" || strings.HasPrefix(name, "/") {
		return nil, ZoneError(name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, ZoneError(name)
	}
	return zone, nil
}

// Next returns the first time after another one, in UTC; zero if there is none
// within years. It looks for it on a clock without leaps, and then for when the
// clock of the zone shows that; what that one shows before the given time is
// passed over, so that times grow strictly whatever the zone does.
//
// What the clock leaps over comes after the leap, among the times that it shows then. So the
// look begins before a leap that was lately, and goes on until nothing earlier can follow.
func (t *Times) Next(after time.Time) (first time.Time) {
	// A clock without leaps: gronx would leave out what a real one leaps over.
	wall := after.UTC().Truncate(time.Second).Add(min(offset(after, t.zone), offset(after.Add(-nearby), t.zone)))
	for range longestLeap {
		next, err := gronx.NextTickAfter(t.expression, wall, false)
		if err != nil {
			break
		}
		if !first.IsZero() && !next.Before(first.Add(offset(first, t.zone))) {
			break
		}
		if at := shown(next, t.zone); at.After(after) && (first.IsZero() || at.Before(first)) {
			first = at
		}
		wall = next
	}
	return first
}

// longestLeap is the greatest leap of any clock, in minutes: on the Pacific a day was left out.
const longestLeap = 48 * 60

// nearby is how far from a time a leap changes what the clock shows at it: more
// than any clock differs from UTC, and than any leap.
const nearby = 36 * time.Hour

// offset returns how far the clock of a zone is ahead of UTC.
func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// shown returns when the clock of a zone first shows a time, in UTC. One that it
// leaps over comes as long after the leap as it is after the leap's beginning.
func shown(wall time.Time, zone *time.Location) time.Time {
	before, after := wall.Add(-offset(wall.Add(-nearby), zone)), wall.Add(-offset(wall.Add(nearby), zone))
	if at := before; at.Add(offset(at, zone)).Equal(wall) {
		return at
	}
	if at := after; at.Add(offset(at, zone)).Equal(wall) {
		return at
	}
	return before
}
