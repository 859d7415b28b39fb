package telemetry

import (
	"fmt"
	"strings"
)

// Prometheus returns the name of the metric at /metrics; a histogram's has _bucket, _sum or
// _count behind it.
func (i *Instrument) Prometheus() string {
	name := strings.ReplaceAll(i.Name, ".", "_")
	switch i.Unit {
	case "s":
		name += "_seconds"
	case "1":
		name += "_ratio"
	}
	if i.Kind == Counter {
		name += "_total"
	}
	return name
}

// across says how operators combine replicas.
var across = map[Combination]string{
	Sum:  "sum",
	Max:  "**max**",
	Each: "each",
}

// Tables returns the metrics and their attributes as tables in Markdown, for operators.
func Tables() string {
	var b strings.Builder
	b.WriteString("| metric | at `/metrics` | kind | by | replicas | attributes | what |\n|---|---|---|---|---|---|---|\n")
	for _, i := range Instruments() {
		var keys []string
		for _, a := range i.Attributes {
			keys = append(keys, "`"+a.Key+"`")
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s | %s | %s |\n",
			i.Name, i.Prometheus(), i.Kind, i.By, across[i.Across], strings.Join(keys, ", "), i.Text)
	}
	b.WriteString("\n| attribute | most values | what |\n|---|--:|---|\n")
	for _, a := range Attributes() {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", a.Key, a.Most, a.Text)
	}
	return b.String()
}
