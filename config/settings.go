package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Who says so, in a forge.Setting.
const (
	// ByDefault says that it is as where there is no file.
	ByDefault = "default"
	// ByRepository says that the repository's file has another value than the default.
	ByRepository = "repository"
	// ByOperator says that whoever runs the services decided it, whatever the file says.
	ByOperator = "operator"
)

const (
	// maxShown bounds the value of a setting as people see it, in bytes.
	maxShown = 4 << 10
	// Left stands in place of what is not shown.
	Left = "…"
)

// named are the tables of which people see the names alone. What is in them is in the repository: commands, programs and
// values of parameters, which may be long, and may have secrets in them.
var named = []string{"recipes", "checks", "agents"}

// Settings returns every setting as people may see it, by name. Values of environment variables, passwords in
// addresses, and values of flags that are named like a secret are left out of commands, although whoever can read the file
// sees them: a page has other readers.
func (p *Project) Settings() []forge.Setting {
	var list []forge.Setting
	add := func(name, value string, standard bool) {
		by := ByRepository
		if standard {
			by = ByDefault
		}
		list = append(list, forge.Setting{Name: name, Value: cut(withoutSecrets(value)), By: by})
	}
	walk(func(v, standard reflect.Value, path, _ string) {
		if top, _, _ := strings.Cut(path, "."); !slices.Contains(named, top) {
			add(path, text(v), isDefault(v, standard))
		}
	}).project(p)
	for table, names := range map[string][]string{
		"recipes": slices.Sorted(maps.Keys(p.Recipes)), "checks": p.CheckNames(), "agents": slices.Sorted(maps.Keys(p.Agents)),
	} {
		add(table, strings.Join(names, "\n"), len(names) == 0)
	}
	slices.SortFunc(list, func(a, b forge.Setting) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// text returns a value as people write it in the file; of a list, an entry a line.
func text(v reflect.Value) string {
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return duration(d)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return text(v.Elem())
	case reflect.Slice:
		lines := make([]string, v.Len())
		for i := range lines {
			lines[i] = text(v.Index(i))
		}
		return strings.Join(lines, "\n")
	default:
		return fmt.Sprint(v.Interface())
	}
}

// duration returns a duration without the units that it has none of: 10m, and not 10m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// cut returns as much of a value as is shown.
func cut(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown-len(Left)], "") + Left
}

var (
	// assigned matches a variable that a command sets, with its value.
	assigned = pattern.New(`(^|[\s;&|({'"])([A-Za-z_][A-Za-z0-9_]*)=("[^"]*"?|'[^']*'?|[^\s;&|)'"]+)`)
	// flagged matches a flag that is named like a secret, with its value.
	flagged = pattern.New(`(?i)(--?[a-z0-9_-]*(?:token|secret|passw|credential|auth|key)[a-z0-9_-]*(?:=|[ \t]+))("[^"]*"?|'[^']*'?|[^\s;&|)]+)`)
	// userinfo matches the user and password in front of the host of a URL.
	userinfo = pattern.New(`(://)[^/\s@'"]+@`)
)

// withoutSecrets leaves out of a command what may be a secret.
func withoutSecrets(s string) string {
	s = assigned.ReplaceAllString(s, "${1}${2}="+Left)
	s = flagged.ReplaceAllString(s, "${1}"+Left)
	return userinfo.ReplaceAllString(s, "${1}"+Left+"@")
}
