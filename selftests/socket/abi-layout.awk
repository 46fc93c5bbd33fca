# SPDX-License-Identifier: GPL-2.0-only
#
# From a header with structures, a program that prints their layout as static
# assertions. So no structure and no field can be forgotten.

/^struct [a-z0-9_]+ \{$/ {
	name = $2
	structs[++n] = name
	fields[name] = ""
	next
}

/^\};$/ { name = "" }

name != "" && /^\t[a-z_].*;$/ {
	field = $NF
	sub(/(\[.*\])?;$/, "", field)
	fields[name] = fields[name] " " field
}

END {
	print "#include <linux/dblp.h>"
	print "#include <stddef.h>"
	print "#include <stdio.h>"
	print "int main(void)"
	print "{"
	for (i = 1; i <= n; i++) {
		name = structs[i]
		printf "\tprintf(\"_Static_assert(sizeof(struct %s) == %%zu, \\\"%s\\\");\\n\", sizeof(struct %s));\n", name, name, name
		count = split(fields[name], field_of, " ")
		for (j = 1; j <= count; j++)
			printf "\tprintf(\"_Static_assert(offsetof(struct %s, %s) == %%zu, \\\"%s.%s\\\");\\n\", offsetof(struct %s, %s));\n", name, field_of[j], name, field_of[j], name, field_of[j]
	}
	print "\treturn 0;"
	print "}"
}
