package forgedir

import (
	"os"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

func TestOpenWritesTheSchemas(t *testing.T) {
	d := newFixture(t)
	const name = "schemas/intent.schema.json"
	want := d.text(name)
	d.put(name, "of an older version")
	d.reopen()
	if d.text(name) != want {
		t.Error("the schema was not brought up to date")
	}
}

// What is removed while a run goes on is there again after the next look.
func TestSchemasAreRenewed(t *testing.T) {
	const name = "schemas/intent.schema.json"
	for _, gone := range []string{name, layout.Schemas} {
		d := newFixture(t)
		v := sample()
		d.write(v)
		want := d.text(name)
		for what, look := range map[string]func(){"edits": func() { d.edits(v) }, "drafts": func() { d.drafts() }} {
			if err := os.RemoveAll(d.file(gone)); err != nil {
				t.Fatal(err)
			}
			if look(); d.text(name) != want {
				t.Errorf("%s: %s did not write it again", gone, what)
			}
		}
	}
}
