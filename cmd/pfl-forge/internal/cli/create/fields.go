package create

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/document"
)

// Fields are flags for fields of an intent, as document.Fields describes them.
// The zero value has no flags; Add and AddChecks bind it to those of a command,
// and Intent reads it after they were parsed.
type Fields struct {
	intent    forge.Intent
	dependsOn []string
	with      []string
	// checks are criteria that commands of the project decide.
	checks []string
}

// AddChecks adds the flag --check to a command. Intent puts those checks after the other
// criteria.
func (f *Fields) AddChecks(cmd *cobra.Command, complete cobra.CompletionFunc) {
	cmd.Flags().StringArrayVar(&f.checks, "check", nil,
		"the `name` of a check in pfl-forge.yaml that must pass in the end, which makes the intent a goal; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("check", complete)
}

// Checks returns the names that --check was given.
// They are not checked; Intent does that.
func (f *Fields) Checks() []string { return f.checks }

// Add adds the flags of the named fields to a command, of all fields if none is named.
// Names are those of fields, such as budget_usd, and not those of flags.
func (f *Fields) Add(cmd *cobra.Command, names ...string) {
	for _, field := range document.FieldsBy(document.Persons) {
		if field.Flag.Name != "" && (len(names) == 0 || slices.Contains(names, field.Name)) {
			f.add(cmd, &field)
		}
	}
}

// add gives a command the flag of a field. What the flag was given is read by
// Intent. A field of a type that it does not know is a panic: a mistake in the
// table, which any call of the program shows.
func (f *Fields) add(cmd *cobra.Command, field *document.Field) {
	set, flag := cmd.Flags(), field.Flag
	help := strings.ReplaceAll(flag.Help, "{agents}", strings.Join(config.Agents(), ", "))
	list := set.StringArrayVar
	if flag.Commas {
		list = func(to *[]string, name string, values []string, help string) {
			kit.ListVar(set, to, name, values, help)
		}
	}
	words := field.Words
	switch to := field.Of(&f.intent).(type) {
	case *string:
		set.StringVarP(to, flag.Name, flag.Short, "", help)
		if to == &f.intent.Agent {
			words = config.Agents()
		}
	case *int:
		set.IntVar(to, flag.Name, 0, help)
	case *float64:
		set.Float64Var(to, flag.Name, 0, help)
	case *[]string:
		list(to, flag.Name, nil, help)
	case *[]forge.IntentID:
		list(&f.dependsOn, flag.Name, nil, help)
	case *map[string]string:
		list(&f.with, flag.Name, nil, help)
	default:
		panic(fmt.Sprintf("no flag can set %T", to))
	}
	if words != nil {
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// Intent returns an intent with the fields that were given, and no others.
// Errors are mistakes in the command line, and name the flag. Ids are not
// parsed here but by Prepare, which knows the intents that exist.
func (f *Fields) Intent() (forge.Intent, error) {
	i := f.intent
	for _, d := range f.dependsOn {
		i.DependsOn = append(i.DependsOn, forge.IntentID(d))
	}
	for _, name := range f.checks {
		if !forge.CheckName.MatchString(name) {
			return i, kit.Usage(fmt.Errorf("--check %q is not the name of a check: give one of those below checks in pfl-forge.yaml", name))
		}
	}
	i.Criteria, i.Checks = document.WithChecks(i.Criteria, f.checks)
	var err error
	i.With, err = values(f.with)
	return i, err
}

// values parses the values of a recipe's parameters, each as NAME=VALUE.
func values(list []string) (map[string]string, error) {
	with := map[string]string{}
	for _, entry := range list {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, kit.Usage(fmt.Errorf("--with %q is not NAME=VALUE", entry))
		}
		if err := config.CheckParamName(name); err != nil {
			return nil, kit.Usage(fmt.Errorf("--with %s: %w", name, err))
		}
		if !utf8.ValidString(value) { // it would be another value in the journal
			return nil, kit.Usage(fmt.Errorf("--with %s: the value is not valid UTF-8", name))
		}
		if _, twice := with[name]; twice {
			return nil, kit.Usage(fmt.Errorf("--with %s is given twice", name))
		}
		with[name] = value
	}
	return with, nil
}
