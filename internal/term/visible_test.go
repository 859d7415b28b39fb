package term

import "testing"

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\nof lines":    "plain\ttext\nof lines",
		"a\r\nb\rc":                "a\nb<U+000D>c",
		"a\x1b]0;obey\x07b":        "a<U+001B>]0;obey<U+0007>b",
		"\u00a0\u2003\u3000\u2800": "<U+00A0><U+2003><U+3000><U+2800>",
		"\u200b\U000e0041":         "<U+200B><U+E0041>",
		"a\u2028b\u0085c":          "a<U+2028>b<U+0085>c",
		"\U0001bca0":               "<U+1BCA0>",
		"❤\ufe0f 1\ufe0f\u20e3":    "❤\ufe0f 1\ufe0f\u20e3",
		"❤\ufe0f\ufe0f a\ufe0f":    "❤\ufe0f<U+FE0F> a<U+FE0F>",
		"❤\ufe01":                  "❤<U+FE01>",
		"日本語 é \xff":               "日本語 é \ufffd",
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Sanitize("日本\u3000語"); got != "日本\u3000語" {
		t.Errorf("ordinary output of a terminal becomes %q", got)
	}
}
