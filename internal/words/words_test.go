package words_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/words"
)

func TestSet(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"Reset links of users, a fix", []string{"links", "reset", "users"}},
		{"cmd/pfl-forge/main_test.go", []string{"forge", "main", "test"}},
		{"Größe ändern; l'été", []string{"größe", "ändern"}},
		{"ログイン画面を直す", []string{"を直", "ログイン", "画面", "直す", "面を"}},
		{"ﾛｸﾞｲﾝ 画面", []string{"ログイン", "画面"}},
		{"Ｌｏｇｉｎ 画面", []string{"login", "画面"}},
		{"画面の文字", []string{"の文", "文字", "画面", "面の"}},
		{"修复登录页面", []string{"修复", "复登", "录页", "登录", "页面"}},
		{"한국어 매뉴얼을", []string{"국어", "뉴얼", "매뉴", "얼을", "한국"}},
		{"ภาษา", []string{"ภา", "ษา", "าษ"}},
		{"Большой объём", []string{"большой", "объём"}},
		{"する、ます", nil},
		{"壁", []string{"壁"}},
		{"🚀", nil},
		{"\xff", nil},
		{"", nil},
	} {
		if got := slices.Sorted(maps.Keys(words.Set(tt.text))); !slices.Equal(got, tt.want) {
			t.Errorf("the words of %q are %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Titles that say the same in another order, or width, have the same words.
func TestSorted(t *testing.T) {
	if a, b := words.Sorted("Links, Reset"), words.Sorted("reset links"); !slices.Equal(a, b) {
		t.Errorf("%q and %q", a, b)
	}
	if got := words.Sorted("a b"); !slices.Equal(got, []string{"a b"}) {
		t.Errorf("got %q", got)
	}
	set := words.Set("検索を速くする")
	if near, far := words.Common(words.Sorted("検索の索引"), set), words.Common(words.Sorted("文書を書く"), set); near == 0 || far > 0 {
		t.Errorf("%d words are common with a near text, %d with a far one", near, far)
	}
}
