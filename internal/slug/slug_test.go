package slug_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/slug"
)

func TestMake(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"Fix the login!", "fix-the-login"},
		{"don't", "don-t"}, // as forge.Slug: ASCII stays as it is
		{"Écrire le manuel", "ecrire-le-manuel"},
		{"L’été à Nîmes", "l-ete-a-nimes"},
		{"Größe ändern: Straßen über Öl", "grosse-andern-strassen-uber-ol"},
		{"Łódź, Ångström, Ørsted, þing", "lodz-angstrom-orsted-thing"},
		{"İstanbul'da ığdır", "istanbul-da-igdir"},
		{"日本語", "ri-ben-yu"},
		{"マニュアルをかく", "maniyuaruwokaku"},
		{"ログイン画面を直す", "roguinhua-mian-wozhi-su"},
		{"修复登录", "xiu-fu-deng-lu"},
		{"한국어 매뉴얼", "hangugeo-maenyueol"},
		{"مرحبا بالعالم", "mrhb-bllm"},
		{"עברית", "bryt"},
		{"Большой объём", "bolshoi-obiom"},
		{"Ελληνικά", "ellenika"},
		{"हिन्दी", "hindii"},
		{"Fix 登录 🚀 now", "fix-deng-lu-now"},
		{"ｆｕｌｌ　ｗｉｄｔｈ１２", "full-width12"},
		{"𝐛𝐨𝐥𝐝 ﬁne", "bold-fine"},
		{"e\u0301crire", "ecrire"},
		{"🚀🎉", ""},
		{"\u200b\u202e", ""},
		{"", ""},
		{"\xff\xfe", ""},
	} {
		if got := slug.Make(tt.text); got != tt.want {
			t.Errorf("Make(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"Écrire", "ecrire"},
		{"", "intent"},
		{" \n", "intent"},
		{"🚀", "intent-ebbc0b28"},
		{" 🚀 ", "intent-ebbc0b28"},
		{"🎉", "intent-6146299c"},
	} {
		if got := slug.Named("intent", tt.text); got != tt.want {
			t.Errorf("Named(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

// FuzzNamed checks that every text has an id, and the same one in every encoding of its
// accents.
func FuzzNamed(f *testing.F) {
	for _, s := range []string{"Écrire", "日本語", "🚀", "\xff", "Å\u0301", strings.Repeat("語", 100), "-", "ﷺ", "각"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id := slug.Named("intent", s)
		if _, err := forge.ParseIntentID(id); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if !utf8.ValidString(s) {
			return
		}
		for _, form := range []norm.Form{norm.NFC, norm.NFD} {
			if again := slug.Named("intent", form.String(s)); again != id {
				t.Errorf("%q is %q, and %q in another form", s, id, again)
			}
		}
	})
}
