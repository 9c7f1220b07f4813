#include "workbench/line_reader.h"

namespace ration {

LineRead read_line(std::istream& in, std::size_t most, std::string& line) {
    using Traits = std::char_traits<char>;
    line.clear();
    std::streambuf& buffer = *in.rdbuf();
    bool any = false;
    for (auto c = buffer.sbumpc(); c != Traits::eof(); c = buffer.sbumpc()) {
        any = true;
        if (c == '\n') {
            break;
        }
        if (line.size() > most) {  // one more is room for the carriage return of a longest line
            return LineRead::too_long;
        }
        line.push_back(Traits::to_char_type(c));
    }
    if (!line.empty() && line.back() == '\r') {
        line.pop_back();
    }
    if (line.size() > most) {
        return LineRead::too_long;
    }
    return any ? LineRead::line : LineRead::end;
}

}  // namespace ration
