// Package render turns summaries, records and progress into text: tables, JSON
// and YAML for lists, lines for events, and two views of a run while it goes
// on.
//
//	Lines     one line for each event that concerns people; both views show these
//	Live      lines that scroll, over one line for each running attempt
//	Board     a view that has the whole terminal, for package watch
//	Columns   a table that gives way where the terminal is narrow
//	Rule, ReasonOf, Goal, Age ...   the words that all of them use
//
// Text that others wrote passes through package term on its way to a person.
// JSON and YAML carry it as it is. The rules of a view stand at the top of its
// file.
package render

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Format is a way to print a list. It is the value of the flag -o, and pflag's
// Value.
type Format string

// The formats.
const (
	Table Format = "table"
	Wide  Format = "wide" // a table with more columns
	JSON  Format = "json"
	YAML  Format = "yaml"
	Name  Format = "name" // ids, one per line
)

// Formats lists every format.
func Formats() []string {
	return []string{string(Table), string(Wide), string(JSON), string(YAML), string(Name)}
}

// Set is called with the flag's text. It refuses formats that there are not.
func (f *Format) Set(s string) error {
	if !slices.Contains(Formats(), s) {
		return fmt.Errorf("can be %s", strings.Join(Formats(), ", "))
	}
	*f = Format(s)
	return nil
}

// String returns the format as it is typed.
func (f *Format) String() string { return string(*f) }

// Type names the kind of flag in help texts.
func (f *Format) Type() string { return "format" }

// Data reports whether the format is for programs: then nothing but one
// document is printed.
func (f *Format) Data() bool { return *f == JSON || *f == YAML }

// Write prints a value as JSON or YAML, as one document. It is for formats for
// which Data is true.
func (f *Format) Write(w io.Writer, v any) error {
	if *f == YAML {
		text, err := strictyaml.Encode(v)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
