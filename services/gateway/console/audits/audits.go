// Package audits reads the address of a page of audits. It is pure: it knows
// neither HTML nor HTTP, and has no clock.
//
// Whoever likes makes up an address: a parameter that is not known, is given
// twice or is no day is an error.
package audits

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/console/board"
)

// filters are the parameters of a page, besides the place. Since and until are days, or times as
// in RFC 3339; the others are compared as they are.
var filters = []string{"project", "intent", "actor", "action", "since", "until"}

// Parse returns the filter that an address has, and the parameters by which the API is
// asked for it, without the project and the place. Its error is a sentence without its end.
func Parse(q url.Values) (values, ask url.Values, err error) {
	values, ask = url.Values{}, url.Values{}
	for name, given := range q {
		if name != "after" && !slices.Contains(filters, name) {
			return nil, nil, errors.New("the audit has no filter of this name")
		}
		if len(given) > 1 {
			return nil, nil, errors.New("a filter is given twice")
		}
		value := strings.TrimSpace(given[0])
		if value == "" || name == "after" {
			continue
		}
		values.Set(name, value)
		switch name {
		case "project":
		case "since", "until":
			at, err := board.Since(value)
			if err != nil {
				return nil, nil, err
			}
			if name == "until" && len(value) == len(time.DateOnly) { // the day is meant as a whole
				at = at.AddDate(0, 0, 1)
			}
			ask.Set(name, at.Format(time.RFC3339))
		default:
			ask.Set(name, value)
		}
	}
	return values, ask, nil
}
