package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/cmdline"
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

// maxShown bounds the value of a setting as people see it, in bytes.
const maxShown = 4 << 10

// named are the tables of which people see the names alone. What is in them is in the repository:
// commands, programs and values of parameters, which may be long, and may have secrets in them.
var named = []string{"recipes", "checks", "agents"}

// commands are the settings that are command lines. Others are words, paths and numbers.
var commands = []string{"verify", "worktree_setup"}

// Settings returns every setting as people may see it, by name. Of a command line that is as much
// as package cmdline shows, although whoever can read the file sees all: a page has other readers.
func (p *Project) Settings() []forge.Setting {
	var list []forge.Setting
	add := func(name, value string, standard bool) {
		by := ByRepository
		if standard {
			by = ByDefault
		}
		list = append(list, forge.Setting{Name: name, Value: cut(value), By: by})
	}
	walk(func(v, standard reflect.Value, path, _ string) {
		if top, _, _ := strings.Cut(path, "."); !slices.Contains(named, top) {
			add(path, seen(path, v), isDefault(v, standard))
		}
	}).project(p)
	for table, names := range map[string][]string{
		"recipes": slices.Sorted(maps.Keys(p.Recipes)), "checks": p.CheckNames(), "agents": slices.Sorted(maps.Keys(p.Agents)), "schedules": p.ScheduleNames(),
	} {
		add(table, strings.Join(names, "\n"), len(names) == 0)
	}
	slices.SortFunc(list, func(a, b forge.Setting) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// seen returns the text of a setting, with as much of command lines as people may see.
func seen(path string, v reflect.Value) string {
	if !slices.Contains(commands, path) {
		return text(v)
	}
	lines := make([]string, v.Len())
	for i := range lines {
		lines[i] = cmdline.Shown(v.Index(i).String())
	}
	return strings.Join(lines, "\n")
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
	return strings.ToValidUTF8(s[:maxShown-len(cmdline.Left)], "") + cmdline.Left
}
