# cmake -DPROGRAM=FILE -DHEADER=FILE -P hash.cmake: a header that changes when the program does.
file(SHA256 ${PROGRAM} hash)
file(WRITE ${HEADER} "// ${hash}\n")
