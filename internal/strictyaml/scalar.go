package strictyaml

import (
	"encoding"
	"math"
	"reflect"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// The numbers that every version of YAML and every reader takes for the same: in decimal,
// without a plus, leading zeros, underscores or exponents.
var (
	integer = pattern.New(`^(0|-?[1-9][0-9]*)$`)
	decimal = pattern.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
)

// scalar decodes a single value.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, field string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, field, "must be a single value, not %s", describe(n))
		return
	}
	if isNull(n) {
		d.fail(n, field, "must not be empty; give a value or leave the key out")
		return
	}
	if why := setScalar(n, v); why != "" {
		d.fail(n, field, "%s, not %s", why, describe(n))
	}
}

// setScalar sets v to a node's value. If the node has no value of v's type, it returns what
// it must be: "must be a whole number".
func setScalar(n *yaml.Node, v reflect.Value) string {
	switch to := v.Addr().Interface().(type) {
	case *time.Duration:
		dur, err := time.ParseDuration(n.Value)
		if err != nil {
			return "must be a duration such as 90s or 10m"
		}
		*to = dur
		return ""
	case *time.Time:
		t, err := time.Parse(time.RFC3339, n.Value)
		if err != nil {
			return "must be a time such as 2026-01-02T15:04:05Z"
		}
		*to = t
		return ""
	case encoding.TextUnmarshaler:
		if err := to.UnmarshalText([]byte(n.Value)); err != nil {
			return "must be another value (" + err.Error() + ")"
		}
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
		return ""
	case reflect.Bool:
		return setBool(n, v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(n.Value, 10, v.Type().Bits())
		if !bare(n) || !integer.MatchString(n.Value) || err != nil {
			return "must be a whole number"
		}
		v.SetInt(i)
		return ""
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if !bare(n) || !decimal.MatchString(n.Value) || err != nil || math.IsInf(f, 0) {
			return "must be a number such as 2.5"
		}
		v.SetFloat(f)
		return ""
	}
	panic("strictyaml: cannot decode into " + v.Type().String())
}

// setBool is setScalar for a bool.
func setBool(n *yaml.Node, v reflect.Value) string {
	if !bare(n) || n.Value != "true" && n.Value != "false" {
		return "must be true or false"
	}
	v.SetBool(n.Value == "true")
	return ""
}

// bare reports whether the value stands without quotes or block markers.
func bare(n *yaml.Node) bool { return n.Style == 0 }
