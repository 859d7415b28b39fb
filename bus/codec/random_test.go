package codec_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"
	"unicode"

	forge "github.com/pfl-forge/pfl-forge"
)

// closed lists the values of every string type that is an enum on the wire.
// TestEnumsHaveEveryConstant compares it with the constants of package forge.
var closed = map[reflect.Type][]string{
	reflect.TypeFor[forge.Step]():          values(forge.Steps()...),
	reflect.TypeFor[forge.Source]():        values(forge.SourceHuman, forge.SourceReflection, forge.SourceSystem),
	reflect.TypeFor[forge.Risk]():          values(forge.RiskLow, forge.RiskMed, forge.RiskHigh),
	reflect.TypeFor[forge.Complexity]():    values(forge.ComplexityLow, forge.ComplexityMed, forge.ComplexityHigh),
	reflect.TypeFor[forge.TaskStatus]():    values(forge.TaskPending, forge.TaskImplementing, forge.TaskDone, forge.TaskFailed),
	reflect.TypeFor[forge.Verdict]():       values(forge.VerdictApproved, forge.VerdictRejected),
	reflect.TypeFor[forge.EvidenceType]():  values(forge.EvidenceFile, forge.EvidenceSkill, forge.EvidenceHistory, forge.EvidenceDecision),
	reflect.TypeFor[forge.Outcome]():       values(forge.OutcomeSuccess, forge.OutcomeFailed, forge.OutcomeEscalated),
	reflect.TypeFor[forge.Waiting]():       values(forge.WaitingApproval, forge.WaitingClarification, forge.WaitingFailed, forge.WaitingDirty),
	reflect.TypeFor[forge.Decision]():      values(forge.Applied, forge.Ignored, forge.Refused),
	reflect.TypeFor[forge.LandOutcome]():   values(forge.LandIntegrated, forge.LandConflict, forge.LandVerifyFailed, forge.LandChanged, forge.LandDirty),
	reflect.TypeFor[forge.ProgressKind]():  values(forge.ProgressStarted, forge.ProgressText, forge.ProgressTool, forge.ProgressOutput, forge.ProgressUsage, forge.ProgressEnded),
	reflect.TypeFor[forge.FailureReason](): values(forge.FailTimeout, forge.FailIdle, forge.FailOutputLimit, forge.FailCrashed, forge.FailInvalidOutput, forge.FailAuth, forge.FailRateLimited, forge.FailQuota, forge.FailOverloaded, forge.FailRefused, forge.FailMaxTurns, forge.FailBudget, forge.FailLostSession, forge.FailMissingCLI, forge.FailKilled, forge.FailUnsafe, forge.FailConfig, forge.FailRepository),
	reflect.TypeFor[forge.Status]():        values(forge.StatusProposed, forge.StatusApproved, forge.StatusExecuting, forge.StatusDone, forge.StatusBlocked, forge.StatusError, forge.StatusRejected, forge.StatusCancelled),
}

func values[S ~string](vs ...S) []string {
	var out []string
	for _, v := range vs {
		out = append(out, string(v))
	}
	return out
}

// alternatives are the structs of which at most one pointer, or Started, may be
// set.
var alternatives = map[reflect.Type]bool{
	reflect.TypeFor[forge.Event]():  true,
	reflect.TypeFor[forge.Result](): true,
}

// fill sets v to something random, about half of its fields.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).UTC()))
		return
	case time.Duration:
		v.SetInt(r.Int64N(1<<50) - 1<<49)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		fillStruct(r, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(2), 2))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{text(r): text(r), "": text(r)}))
	case reflect.String:
		v.SetString(text(r))
		if vs := closed[v.Type()]; vs != nil {
			v.SetString(vs[r.IntN(len(vs))])
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int:
		v.SetInt(int64(int32(r.Uint32())))
	case reflect.Int64:
		v.SetInt(int64(r.Uint64()))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64())
	default:
		panic(fmt.Sprintf("no rule for %s", v.Type()))
	}
}

func fillStruct(r *rand.Rand, v reflect.Value) {
	var pointers []int
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if alternatives[v.Type()] && (f.Type.Kind() == reflect.Pointer || f.Name == "Started") {
			pointers = append(pointers, i)
		} else if r.IntN(2) == 0 {
			fill(r, v.Field(i))
		}
	}
	if len(pointers) > 0 {
		fill(r, v.Field(pointers[r.IntN(len(pointers))]))
	}
}

func text(r *rand.Rand) string {
	rs := make([]rune, r.IntN(6))
	for i := range rs {
		for {
			rs[i] = rune(r.IntN(0x3000))
			if unicode.IsPrint(rs[i]) || rs[i] == 0 || rs[i] == '\n' {
				break
			}
		}
	}
	return string(rs)
}
