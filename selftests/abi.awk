# SPDX-License-Identifier: GPL-2.0-only
#
# From the headers of the user API, a program that prints what programs have
# compiled in: structures, the place and size of each field, and the values of
# constants. So none can be forgotten.

/^struct [a-z0-9_]+ \{$/ {
	name = $2
	out[++n] = sprintf("printf(\"struct %s %%zu\\n\", sizeof(struct %s));", name, name)
	next
}

/^\};$/ { name = "" }

name != "" && /^\t[a-z_].*;$/ {
	field = $NF
	sub(/(\[.*\])?;$/, "", field)
	out[++n] = sprintf("printf(\"\\t%s %%zu %%zu\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));", field, name, field, name, field)
}

# Not the ends of lists, which move
/^\t[A-Z][A-Z0-9_]+( *\t*= .*)?,$/ && !/= \(__/ {
	value = $1
	sub(/,$/, "", value)
	out[++n] = sprintf("printf(\"%s %%lld\\n\", (long long)(%s));", value, value)
}

/^#define [A-Z][A-Z0-9_]+[ \t]+["0-9A-Z]/ {
	format = $3 ~ /^"/ ? "%s\\n\", " : "%lld\\n\", (long long)"
	out[++n] = sprintf("printf(\"%s %s(%s));", $2, format, $2)
}

END {
	print "#include <linux/dblp.h>"
	print "#include <linux/dblp_netlink.h>"
	print "#include <stddef.h>"
	print "#include <stdio.h>"
	print "int main(void)"
	print "{"
	for (i = 1; i <= n; i++)
		print "\t" out[i]
	print "\treturn 0;"
	print "}"
}
