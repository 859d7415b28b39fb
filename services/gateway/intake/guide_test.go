package intake_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// TestGuideOfIntake: the files of rules in the guide are files of rules, and
// its explanations are those of its delivery.
func TestGuideOfIntake(t *testing.T) {
	data, err := os.ReadFile("../../../docs/guide-intake.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	block := func(kind string, n int) []byte {
		t.Helper()
		parts := strings.Split(guide, "```"+kind+"\n")
		if len(parts) <= n {
			t.Fatalf("the guide has no %d blocks of %s", n, kind)
		}
		text, _, _ := strings.Cut(parts[n], "```")
		return []byte(text)
	}
	rules, err := intake.Parse("intake.yaml", block("yaml", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := intake.ParseNarrowing("pfl-forge-intake.yaml", block("yaml", 2)); err != nil {
		t.Error(err)
	}
	for _, permission := range []intake.Permission{intake.Write, intake.Read} {
		trigger, err := intake.ReadDelivery("forge", block("json", 1), intake.Unsaid{Permission: permission})
		if err != nil {
			t.Fatal(err)
		}
		d := rules.Decide(&trigger, nil, unused, now)
		said := "--permission " + string(permission) + " delivery.json\n" + d.Asker.Login + " asks, in shop/web\n" + d.Explain()
		if !strings.Contains(guide, said) {
			t.Errorf("the guide does not have\n%s", said)
		}
	}
}
