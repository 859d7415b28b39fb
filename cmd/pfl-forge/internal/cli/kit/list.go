package kit

import (
	"strings"

	"github.com/spf13/pflag"
)

// ListVar defines a flag of values that are separated by commas, and that may be repeated.
// pflag's own kind reads what it is given as a line of CSV: what follows a line break is
// dropped, and a quotation mark is an error. Here each value is taken as it is, for those
// who check it.
func ListVar(set *pflag.FlagSet, to *[]string, name string, values []string, help string) {
	*to = values
	set.Var(&list{to: to}, name, help)
}

// list adds to the values of a flag. The first use replaces the default.
type list struct {
	to  *[]string
	set bool
}

func (l *list) String() string {
	if l.to == nil {
		return ""
	}
	return strings.Join(*l.to, ",")
}

func (l *list) Set(s string) error {
	if !l.set {
		*l.to, l.set = nil, true
	}
	if s != "" {
		*l.to = append(*l.to, strings.Split(s, ",")...)
	}
	return nil
}

func (l *list) Type() string { return "strings" }
