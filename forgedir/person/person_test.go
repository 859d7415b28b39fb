package person_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/person"
)

func TestUnreadableDraft(t *testing.T) {
	p := person.Unreadable(".forge/intent-drafts/x.md", &os.PathError{Op: "open", Path: "x", Err: syscall.EACCES})
	want := ".forge/intent-drafts/x.md: cannot be read: permission denied (chmod u+r .forge/intent-drafts/x.md)"
	if p.Error() != want {
		t.Errorf("got %q, want %q", p.Error(), want)
	}
}
