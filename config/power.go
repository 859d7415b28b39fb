package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Power is a setting that runs something, or weakens what keeps agents and commands from the
// machine. What a repository brings of these has effect on a person's machine only once the
// person has trusted it.
type Power struct {
	// Setting is the setting's path, such as recipes.format.run.
	Setting string `json:"setting" yaml:"setting"`
	// Means says in plain words what the setting does.
	Means string `json:"means" yaml:"means"`
	// Value is the value as text, as the repository wrote it: whoever prints it cleans it.
	Value string `json:"value" yaml:"value"`
	// Weakens tells a setting that takes protection away from one that names a command.
	Weakens bool `json:"weakens" yaml:"weakens"`

	// exact is the value as JSON, which tells lists from texts with several lines.
	exact string
}

// class says what a setting can do. One without words is harmless.
type class struct {
	means   string
	weakens bool
	// stricter reports that a value only takes away; nil: no value but the default does.
	stricter func(value, standard any) bool
}

// classes has every setting, with * for names and for places in lists of tables. TestClasses
// compares it to the types, so that a new setting is put into one of the two classes.
var classes = map[string]class{
	"verify":                {means: "runs on every change before it is merged"},
	"checks.*.command":      {means: "runs on every change of a goal that names the check, and decides"},
	"worktree_setup":        {means: "runs in every fresh checkout, with the machine's network"},
	"recipes.*.run":         {means: "runs for an intent that names the recipe"},
	"recipes.*.check":       {means: "runs to review what the recipe made"},
	"recipes.*.each":        {means: "runs to find what the recipe has to do"},
	"recipes.*.tasks.*.run": {means: "runs for an intent that names the recipe"},
	"recipes.*.tasks.*.check": {
		means: "runs to review what the recipe made",
	},
	"recipes.*.params.*.name":        {means: "is set in the environment of the recipe's commands"},
	"recipes.*.params.*.default":     {means: "is given to the recipe's commands"},
	"recipes.*.params.*.suggested":   {means: "is offered to be given to the recipe's commands"},
	"agent":                          {means: "is the program that implements intents, with your login"},
	"roles.*":                        {means: "is the program that does this kind of work, with your login"},
	"review.second.agent":            {means: "is the program that reviews changes as well, with your login"},
	"fallback":                       {means: "stands in for an agent that is at its limit, with your login"},
	"agents.*.command":               {means: "runs as an agent"},
	"worktree_dir":                   {means: "is where checkouts are made and removed"},
	"agents.*.read_only":             {means: "lets this program read the repository without a sandbox", weakens: true},
	"triage_tools":                   {means: "are the tools of agents that only read", weakens: true, stricter: fewer},
	"worker_tools":                   {means: "are the tools of agents that implement", weakens: true, stricter: fewer},
	"policy.network":                 {means: "says what agents can connect to", weakens: true, stricter: is(NetworkModel)},
	"policy.command_network":         {means: "says what commands can connect to", weakens: true, stricter: is(NetworkNone)},
	"policy.sandbox_read":            {means: "can be read by agents and commands", weakens: true},
	"policy.sandbox_write":           {means: "can be written to by agents and commands", weakens: true},
	"policy.analyze_before_approval": {means: "says which intents of others are analyzed before you approve that", weakens: true, stricter: is(AnalyzeNever)},
	"policy.trusted_origins":         {means: "are systems whose intents run without an approval", weakens: true},
	"review.min_confidence":          {means: "is how sure a reviewer or judge has to be", weakens: true, stricter: atLeast},
	"policy.protected_paths":         {means: "are the only files whose change waits for you", weakens: true, stricter: more},

	"checks.*.timeout": {},
	"review.proof":     {}, "review.test_files": {}, "review.second.model": {}, "review.second.when": {}, "review.max_checks": {},
	"merge_queue.batch": {means: "is how many changes one run of verify decides about", weakens: true},
	"base_branch":       {}, "parallel_workers": {}, "merge_queue.parallel": {}, "merge_queue.verify_before_review": {}, "max_review_retries": {},
	"merge.how": {}, "merge.method": {}, "merge.unit": {}, "merge.by": {}, "merge.branch": {}, "merge.draft": {}, "merge.checks": {},
	"merge.checks_wait": {}, "merge.labels": {},
	"models.triage_deep": {}, "models.default": {}, "models.complex": {},
	"calls.effort.analyze": {}, "calls.effort.implement": {}, "calls.effort.review": {}, "calls.effort.reflect": {}, "calls.max_turns": {},
	"calls.escalate.implement.*.model": {}, "calls.escalate.implement.*.effort": {},
	"calls.escalate.review.*.model": {}, "calls.escalate.review.*.effort": {},
	"calls.best_of_two.when": {}, "calls.best_of_two.model": {}, "calls.best_of_two.effort": {},
	"calls.effort.complexity.low": {}, "calls.effort.complexity.med": {}, "calls.effort.complexity.high": {},
	"agents.*.models.triage_deep": {}, "agents.*.models.default": {}, "agents.*.models.complex": {},
	"recipes.*.title": {}, "recipes.*.risk": {}, "recipes.*.allow_empty": {}, "recipes.*.timeout": {},
	"recipes.*.params.*.question": {}, "recipes.*.params.*.context": {},
	"recipes.*.tasks.*.name": {}, "recipes.*.tasks.*.title": {}, "recipes.*.tasks.*.depends_on": {}, "recipes.*.tasks.*.files": {},
	"timeouts.analyze": {}, "timeouts.implement": {}, "timeouts.verify": {}, "timeouts.review": {}, "timeouts.idle": {},
	"budget.intent_usd": {}, "budget.project_usd": {}, "budget.day_usd": {}, "budget.call_usd": {},
	"policy.approvers": {}, "policy.approvals.count": {}, "policy.approvals.not_requester": {}, "policy.max_depth": {}, "policy.sandbox": {},
	"reflection.enabled": {}, "reflection.max_generation": {}, "reflection.proposals_a_day": {}, "reflection.proposals_a_time": {},
}

// is returns a rule for settings of which one value is stricter than the default.
func is[T comparable](strict T) func(value, standard any) bool {
	return func(value, _ any) bool { return value == any(strict) }
}

// atLeast reports that a number is not below the default.
func atLeast(value, standard any) bool { return value.(float64) >= standard.(float64) }

// fewer reports that a list has nothing that the default has not.
func fewer(value, standard any) bool { return more(standard, value) }

// more reports that a list has everything that the default has.
func more(value, standard any) bool {
	have, want := value.([]string), standard.([]string)
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(have, s) })
}

// Powers returns the settings that run or weaken something, and differ from the default, those
// that weaken first, otherwise in the order of their names.
func (p *Project) Powers() []Power {
	var found []Power
	walk(func(v, standard reflect.Value, path, pattern string) {
		if one := power(v, standard, path, pattern); one != nil {
			found = append(found, *one)
		}
	}).project(p)
	slices.SortStableFunc(found, func(a, b Power) int {
		if a.Weakens != b.Weakens {
			return map[bool]int{true: -1, false: 1}[a.Weakens]
		}
		return strings.Compare(a.Setting, b.Setting)
	})
	return found
}

// Digest returns the name under which these settings are trusted; empty where there are none.
// Two configurations have the same one only if exactly the same can run, and is weakened.
func Digest(powers []Power) string {
	if len(powers) == 0 {
		return ""
	}
	lines := make([]string, 0, len(powers))
	for _, p := range powers {
		lines = append(lines, strconv.Quote(p.Setting)+" "+p.exact) // quoted, so that no name passes for more than a name
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte("pfl-forge powers 1\n" + strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}

// walk is called with each setting of a project beside that of the default: its
// path, and its path with * in place of names.
type walk func(v, standard reflect.Value, path, pattern string)

// project visits all settings of a project.
func (w walk) project(p *Project) {
	w.structure(reflect.ValueOf(*p), reflect.ValueOf(*Default()), "", "")
}

// structure visits the fields of a struct at a path; pattern has * in place of names.
func (w walk) structure(v, standard reflect.Value, path, pattern string) {
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		if key == "schedules" { // they do nothing until a person applies them
			continue
		}
		if key == ",inline" {
			w.structure(v.Field(i), standard.Field(i), path, pattern)
			continue
		}
		w.value(v.Field(i), standard.Field(i), path+key, pattern+key)
	}
}

// value visits one value. What a map or list of tables has is compared to an empty one.
func (w walk) value(v, standard reflect.Value, path, pattern string) {
	switch elem := v.Type(); {
	case v.Kind() == reflect.Struct:
		w.structure(v, standard, path+".", pattern+".")
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			w.value(v.MapIndex(key), reflect.Zero(elem.Elem()), path+"."+key.String(), pattern+".*")
		}
	case v.Kind() == reflect.Slice && elem.Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			w.value(v.Index(i), reflect.Zero(elem.Elem()), path+"."+name(v.Index(i), i), pattern+".*")
		}
	default:
		w(v, standard, path, pattern)
	}
}

// name returns the name of an entry of a list: they are unique where the list is valid, and
// the place makes sure. Some have no names.
func name(entry reflect.Value, place int) string {
	if f := entry.FieldByName("Name"); f.IsValid() {
		return strconv.Itoa(place) + ":" + f.String()
	}
	return strconv.Itoa(place)
}

// power returns a setting that runs or weakens something; nil for all others.
// One that is in no class counts as one that does.
func power(v, standard reflect.Value, path, pattern string) *Power {
	c, known := classes[pattern]
	if known && c.means == "" || isDefault(v, standard) {
		return nil
	}
	if c.stricter != nil && c.stricter(v.Interface(), standard.Interface()) {
		return nil
	}
	return &Power{Setting: path, Means: c.means, Value: shown(v), Weakens: c.weakens, exact: exact(v)}
}

// isDefault reports whether a value is that of the default. An empty list is as good as none.
func isDefault(v, standard reflect.Value) bool {
	return reflect.DeepEqual(v.Interface(), standard.Interface()) || v.Kind() == reflect.Slice && v.Len()+standard.Len() == 0
}

// shown returns a value as text: a text as it is, a list with an entry a line.
func shown(v reflect.Value) string {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Slice:
		lines := make([]string, v.Len())
		for i := range lines {
			lines[i] = shown(v.Index(i))
		}
		return strings.Join(lines, "\n")
	}
	return exact(v)
}

// exact returns a value as JSON. Texts are put in hexadecimals, as JSON has one mark for all
// bytes that are no UTF-8.
func exact(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case []string:
		parts := make([]string, len(value))
		for i, s := range value {
			parts[i] = hex.EncodeToString([]byte(s))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *string:
		return hex.EncodeToString([]byte(*value))
	}
	if v.Kind() == reflect.String {
		return hex.EncodeToString([]byte(v.String()))
	}
	text, err := json.Marshal(v.Interface())
	if err != nil { // a setting of a new kind, which TestClasses would show
		panic(err)
	}
	return string(text)
}
