package document

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
)

// An answer is one message, and a server takes no message above its bound, which
// is 1 MiB unless it is told otherwise. So an answer about everything has a bound
// for each list, of which no long one crowds out another, and a list that is asked
// for alone has most of the room. Texts and lists in an item are cut before items
// are left out: a page that cannot show a single item would be the end of reading.
const (
	// partBytes bounds a list of an answer about everything, as JSON, and
	// pageBytes one that was asked for alone.
	partBytes, pageBytes = 64 << 10, 512 << 10
	// itemBytes bounds one item of a list.
	itemBytes = 48 << 10
	// itemTexts bounds each text of an item, and itemLists each list in it. Of an item that
	// is larger than its bound all the same, both are a quarter, as often as it takes.
	itemTexts, itemLists = 8000, 200
	// cutBytes is the room that a Truncated takes.
	cutBytes = 120
)

// Page says which part of an answer is wanted.
type Page struct {
	// Part is one of Parts; empty for all of them, of each as much of its end
	// as an answer has room for.
	Part string
	// After is how many items of the part to pass over.
	After int
}

// Parts lists the names of the lists of a Work that are read by page.
var Parts = []string{"work", "candidates", "parts", "reviews", "verify", "steps", "costs", "adjustments", "decisions"}

// Check returns every mistake in a page that is asked for.
func (p *Page) Check() (errs []forge.FieldError) {
	if p.Part != "" && !slices.Contains(Parts, p.Part) {
		errs = append(errs, forge.FieldError{Field: "part", Reason: fmt.Sprintf("is %.80q; it can be %s", p.Part, strings.Join(Parts, ", "))})
	}
	if p.After < 0 {
		errs = append(errs, forge.FieldError{Field: "after", Reason: "is below 0"})
	}
	if p.After > 0 && p.Part == "" {
		errs = append(errs, forge.FieldError{Field: "after", Reason: "wants a part"})
	}
	return errs
}

// Truncated says of a list or a text that not all of it is there.
type Truncated struct {
	Field string `json:"field"` // such as steps, or reviews[2].issues[0]
	From  int    `json:"from"`  // how many items, or bytes, come before what is there
	Shown int    `json:"shown"`
	Total int    `json:"total"`
}

// Bound reduces a work to a page of it. All that is left out is named.
func (w *Work) Bound(p Page) {
	b := bounds{page: p}
	w.PlanTasks = bounded(&b, "work", w.PlanTasks)
	w.Candidates = bounded(&b, "candidates", w.Candidates)
	w.Parts = bounded(&b, "parts", w.Parts)
	w.Reviews = bounded(&b, "reviews", w.Reviews)
	w.Verified = bounded(&b, "verify", w.Verified)
	w.Steps = bounded(&b, "steps", w.Steps)
	w.Costs = bounded(&b, "costs", w.Costs)
	w.Adjustments = bounded(&b, "adjustments", w.Adjustments)
	w.Decisions = bounded(&b, "decisions", w.Decisions)
	w.Truncated = b.left
}

// bounds is the state of one Bound.
type bounds struct {
	page Page
	left []Truncated
}

// bounded returns the page of a list. The plan is read from its beginning, everything else from
// its end, where what matters now is; a part that was asked for alone from where it was asked for.
func bounded[T any](b *bounds, name string, list []T) []T {
	room, from := partBytes, 0
	switch b.page.Part {
	case name:
		room, from = pageBytes, min(max(b.page.After, 0), len(list))
	case "":
	default:
		return nil
	}
	backward := b.page.Part == "" && !slices.Contains([]string{"work", "candidates", "parts"}, name)
	total, rest := len(list), slices.Clone(list[from:])
	cuts := map[int][]Truncated{}
	shown := 0
	for ; shown < len(rest); shown++ {
		i := shown
		if backward {
			i = len(rest) - 1 - shown
		}
		var size int
		cuts[i], size = fit(&rest[i], itemBytes)
		if room -= size; room < 0 {
			delete(cuts, i)
			break
		}
	}
	page := rest[:shown]
	if backward {
		from = len(rest) - shown
		page = rest[from:]
	}
	if shown < total {
		b.left = append(b.left, Truncated{name, from, shown, total})
	}
	first := 0
	if backward {
		first = from
	}
	for i := range page {
		for _, c := range cuts[first+i] {
			c.Field = fmt.Sprintf("%s[%d]%s", name, i, c.Field)
			b.left = append(b.left, c)
		}
	}
	return page
}

// fit cuts the texts and lists of an item until it is within a bound, and
// returns its cuts and the item's size.
func fit[T any](item *T, most int) (cuts []Truncated, size int) {
	whole := *item
	for texts, lists := itemTexts, itemLists; ; texts, lists = texts/4, max(lists/4, 1) {
		*item, cuts = whole, nil
		c := cutter{texts: texts, lists: lists, cuts: &cuts}
		c.value(reflect.ValueOf(item).Elem(), "", false)
		data, err := json.Marshal(item)
		size = len(data) + cutBytes*len(cuts)
		if err != nil || size <= most || texts == 0 { // a document has nothing that cannot be written
			return cuts, size
		}
	}
}

// cutter shortens the texts and lists of a value. What it writes to is its own: lists are copied.
type cutter struct {
	texts, lists int
	cuts         *[]Truncated
}

// value shortens a value whose field has a path. The end of a text is kept where its tag says so.
func (c cutter) value(v reflect.Value, path string, end bool) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); len(s) > c.texts {
			kept, from := beginning(s, c.texts), 0
			if end {
				kept = ending(s, c.texts)
				from = len(s) - len(kept)
			}
			*c.cuts = append(*c.cuts, Truncated{path, from, len(kept), len(s)})
			v.SetString(kept)
		}
	case reflect.Slice:
		if v.Len() == 0 {
			return
		}
		n := min(v.Len(), c.lists)
		if n < v.Len() {
			*c.cuts = append(*c.cuts, Truncated{path, 0, n, v.Len()})
		}
		own := reflect.MakeSlice(v.Type(), n, n)
		reflect.Copy(own, v)
		v.Set(own)
		for i := range n {
			c.value(v.Index(i), fmt.Sprintf("%s[%d]", path, i), end)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			v.Set(own)
			c.value(own.Elem(), path, end)
		}
	case reflect.Struct:
		for f, field := range v.Fields() {
			if !f.IsExported() {
				continue // of a time
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" {
				name = "." + name
			}
			c.value(field, path+name, f.Tag.Get("cut") == "end")
		}
	default:
	}
}

// beginning returns at most n bytes of a text from its beginning, without a part of a character.
func beginning(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// ending returns at most n bytes of a text from its end, without a part of a character.
func ending(s string, n int) string {
	at := len(s) - n
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}
