namespace ration {}
