package compose

func unreadable(text []byte) *problem { return nil }

func diagnose(text []byte, err error) error { return &problem{text: err.Error()} }

func quoteForMessage(s string) string { return string(appendJSONString(nil, s)) }

func expressionRemedy(text []byte, line, column int) string { return "" }
